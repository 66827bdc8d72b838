// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// finish brings a pod that stays at its revision back into service: what is first
// of these that has something to do or to wait for has its way.
func finish(before *observed, target Target, now time.Time) Step {
	target.irreplaceable = before.irreplaceable
	for _, next := range []func(*observed, Target, time.Time) *Step{
		gone, restart, evicted, resizeWhileOut, serve, relabel, settleSizes, becomeReady, atRest,
	} {
		if step := next(before, target, now); step != nil {
			return *step
		}
	}
	return Step{State: Settled}
}

// restart waits until every container that was changed runs as it should, and
// changes those whose turn comes then.
func restart(before *observed, target Target, now time.Time) *Step {
	progress := before.progress()
	if progress.Reason == ReasonNextBatch {
		return ptr.To(nextBatch(before, target, progress, now))
	}
	if progress.Complete {
		return nil
	}
	if progress.unrestarted != "" {
		return ptr.To(giveUpRestart(before, target, progress, now))
	}
	// A container that ends long after its update is not overdue by that.
	if ready := condition(before.pod, corev1.PodReady); ready.Status != corev1.ConditionTrue {
		progress.Since = latest(progress.Since, ready.LastTransitionTime.Time)
	}
	step := Step{
		State: Restarting, Reason: progress.Reason, Message: progress.Message,
		Since: progress.Since, Until: progress.Recheck,
	}
	if step.Reason == ReasonResizeInProgress {
		step.State = Resizing
	}
	return overdueForImage(step, before, target.Deadline, now)
}

// giveUpRestart handles a pod of which a container keeps its old environment: it is
// recreated or, where the user wants no recreation, serves as it is.
func giveUpRestart(before *observed, target Target, progress Progress, now time.Time) Step {
	if target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType && !target.frozen {
		return remove(before.pod, target, Step{Reason: ReasonNotRestarted, Message: progress.unrestarted}, now)
	}
	if needsMarkReady(before.pod) {
		step := Step{Action: MarkReady, State: Verifying, Message: "it serves with its old environment: " + progress.unrestarted}
		if state := target.stateAtRest(before.pod); state != lifecycleState(before.pod) {
			step.Lifecycle = state
		}
		return step
	}
	return Step{State: Stuck, Reason: ReasonNotRestarted, Since: progress.Since, Message: progress.unrestarted}
}

// serve opens the gates of a pod, and ends its drain.
func serve(before *observed, target Target, _ time.Time) *Step {
	pod := before.pod
	if !needsMarkReady(pod) || target.awaitsNode(pod) {
		return nil
	}
	step := &Step{Action: MarkReady, State: Verifying, Since: before.progress().Since, Message: "every container runs what it should"}
	if state := target.stateAtRest(pod); state != lifecycleState(pod) {
		step.Lifecycle = state
	}
	return step
}

// relabel writes the state in which a pod is to be when nothing is done to it.
func relabel(before *observed, target Target, now time.Time) *Step {
	if step := rest(before.pod, target, now); step != nil && step.Action != Wait {
		return step
	}
	return nil
}

// becomeReady waits until the kubelet reports the pod ready.
func becomeReady(before *observed, target Target, now time.Time) *Step {
	ready := condition(before.pod, corev1.PodReady)
	if ready.Status == corev1.ConditionTrue {
		return nil
	}
	reason, message := whyNotReady(before.pod, ready)
	return overdueForImage(Step{
		State: Verifying, Reason: reason, Message: message,
		Since: latest(before.progress().Since, ready.LastTransitionTime.Time),
	}, before, target.Deadline, now)
}

// atRest waits for the hooks that have to be there before the pod counts.
func atRest(before *observed, target Target, now time.Time) *Step {
	return rest(before.pod, target, now)
}

// gone returns the step of a pod that does not come back, whatever is wanted of it;
// nil for others. One that has ended is replaced by its controller, not changed.
func gone(before *observed, target Target, now time.Time) *Step {
	pod := before.pod
	switch {
	case pod.DeletionTimestamp != nil:
		return ptr.To(Terminate(pod, now))
	case HasEnded(pod):
		return &Step{State: Recreating, Reason: ReasonEnded, Message: fmt.Sprintf("the pod has ended (%s %s) and is to be replaced",
			pod.Status.Phase, pod.Status.Reason)}
	case target.Lifecycle != nil && lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingDelete && !target.revives():
		step := remove(pod, target, Step{Reason: ReasonPreDeleteHook, Message: "it was marked not ready for its deletion"}, now)
		step.Evict = before.resized.State != resize.Done
		return &step
	default:
		return nil
	}
}

// nextBatch changes the containers whose turn comes when those before them are
// ready.
func nextBatch(before *observed, target Target, progress Progress, now time.Time) Step {
	if container := before.notReadyBefore(); container != "" {
		return overdue(Step{
			State: Verifying, Reason: ReasonNextBatch, Since: progress.Since,
			Message: fmt.Sprintf("container %s is not ready; %s", container, progress.Message),
		}, target.Deadline, now)
	}
	images, later := before.splitBatch(progress.Next)
	sizes, due, refused := before.sizesWith(images, target)
	if refused != nil {
		return refuseSizes(before, target, resizeRefusal(refused), now)
	}
	change := Change{Images: images, Later: later, Resize: sizes, Shrink: due}
	if refused := target.undrainable(before.pod, change); refused != nil {
		return waitUndrained(refused, progress.Since)
	}
	if isReady(before.pod) && !target.keepsReady(change) {
		// It was not drained for the batches before.
		if step := drain(before, target, change, now); step != nil {
			return *step
		}
	}
	step := Step{
		Action: Patch, State: Patching, Message: change.String() + " (the containers before are ready)", Change: change,
		Record: newState(before, change, before.state.Revision, now),
	}
	if len(change.Resize) > 0 {
		step.Action, step.State = Resize, Resizing
	}
	return step
}

func overdueStep(step Step, deadline time.Duration, now time.Time) *Step {
	return ptr.To(overdue(step, deadline, now))
}

// imagePatience is how long the image of a container may fail to be pulled before its pod is
// reported as stuck. The kubelet has tried three times by then.
const imagePatience = 45 * time.Second

// overdueForImage is overdue for a pod that may wait for an image in vain: for so long since the
// kubelet began to look for it, if that is over before the deadline. While the kubelet lets a
// container wait that it has started often, it does not look, and says so in turn with the image.
func overdueForImage(step Step, before *observed, deadline time.Duration, now time.Time) *Step {
	isInTurn := step.Reason == crashLoopBackOff && !before.progress().Proved
	if !IsImageFailure(step.Reason) && !isInTurn {
		return overdueStep(step, deadline, now)
	}
	looks := step
	looks.Since = latest(step.Since, before.looksForImagesSince())
	if deadline > 0 && step.Since.Add(deadline).Before(looks.Since.Add(imagePatience)) {
		return overdueStep(step, deadline, now)
	}
	return overdueStep(looks, imagePatience, now)
}

// looksForImagesSince returns when the kubelet began to look for the images of a pod: when the
// last of its containers had stopped, or the pod had its volumes and its network.
func (o *observed) looksForImagesSince() time.Time {
	since := condition(o.pod, corev1.PodReadyToStartContainers).LastTransitionTime.Time
	for _, container := range o.containers {
		if ended := container.status.LastTerminationState.Terminated; ended != nil {
			since = latest(since, ended.FinishedAt.Time)
		}
	}
	return since
}

// overdue turns a step that takes longer than the deadline into Stuck.
func overdue(step Step, deadline time.Duration, now time.Time) Step {
	if deadline <= 0 || step.Since.IsZero() {
		return step
	}
	end := step.Since.Add(deadline)
	if !now.Before(end) {
		step.State = Stuck
		step.Message = fmt.Sprintf("longer than %s: %s", deadline, step.Message)
		return step
	}
	if step.Until.IsZero() || end.Before(step.Until) {
		step.Until = end
	}
	return step
}

// whyNotReady says why a pod that runs its revision is not ready: that no node has
// room for it, the kubelet's reason for a container that cannot start, else what the
// Ready condition says.
func whyNotReady(pod *corev1.Pod, ready corev1.PodCondition) (reason, message string) {
	if scheduled := condition(pod, corev1.PodScheduled); scheduled.Reason == corev1.PodReasonUnschedulable {
		return scheduled.Reason, scheduled.Message
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && cannotStart(status) {
			return waiting.Reason, fmt.Sprintf("container %s: %s", status.Name, waiting.Message)
		}
	}
	if HasDrainedLabel(pod) {
		return ReasonPodNotReady, "the pod is drained by " + strings.Join(drainers(pod), ", ")
	}
	if isReadyButForKubelet(pod) {
		return ReasonPodNotReady, "its containers and gates are ready; " +
			kubeletOn(pod.Spec.NodeName) + " has not reported the pod ready"
	}
	if ready.Message == "" || ready.Reason == conditionReasonUpdating {
		return ReasonPodNotReady, "the pod is not ready"
	}
	return ReasonPodNotReady, "the pod is not ready: " + ready.Message
}
