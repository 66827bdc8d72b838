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

// finish returns the step of a pod that stays at its revision and is to be in service. The
// first stage that returns a step wins.
func (s *situation) finish() Step {
	step := s.first(
		(*situation).gone,           // it does not come back
		(*situation).restart,        // its containers restart, batch after batch
		(*situation).evicted,        // its resize failed, and the workload wants another pod
		(*situation).resizeWhileOut, // its sizes are changed before it serves
		(*situation).serve,          // its gates are opened
		(*situation).relabel,        // its label names another state of its lifecycle
		(*situation).settleSizes,    // its sizes are changed while it serves
		(*situation).becomeReady,    // the kubelet has not reported it ready
		(*situation).rest,           // it waits for its hooks
	)
	if step == nil {
		return Step{State: Settled}
	}
	return *step
}

// finishUnlessRefused is finish for a pod whose next batch the server may refuse.
func (s *situation) finishUnlessRefused() Step {
	step, refused := s.finish(), s.facts.Refused
	if step.Action == Recreate && step.Reason == ReasonNotRestarted && s.facts.Claims.KeepPod() && !isIdle(s.facts.Pod) {
		return s.keepForClaims(&Refusal{Reason: step.Reason, Message: step.Message})
	}
	if (step.Action == Patch || step.Action == Resize) && refused != nil {
		step = s.recreateOrKeepSizes(refused)
		step.Until, step.Denied = refused.Until, refused.Denied
	}
	return step
}

// gone returns the step of a pod that does not come back, whatever is wanted of it;
// nil for others. One that has ended is replaced by its controller, not changed.
func (s *situation) gone() *Step {
	pod := s.facts.Pod
	switch {
	case pod.DeletionTimestamp != nil:
		return ptr.To(Terminate(pod, s.now))
	case HasEnded(pod):
		return &Step{State: Recreating, Reason: ReasonEnded, Message: fmt.Sprintf("the pod has ended (%s %s) and is to be replaced",
			pod.Status.Phase, pod.Status.Reason)}
	case s.target.Lifecycle != nil && lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingDelete && !s.target.revives():
		step := s.remove(ReasonPreDeleteHook, "it was marked not ready for its deletion")
		step.Evict = s.observed.resized.State != resize.Done
		return &step
	default:
		return nil
	}
}

// restart waits until every container that was changed runs as it should, and
// changes those whose turn comes then.
func (s *situation) restart() *Step {
	progress := s.observed.progress()
	switch {
	case progress.Reason == ReasonNextBatch:
		return s.nextBatch()
	case progress.Complete:
		return nil
	case progress.unrestarted != "":
		return ptr.To(s.giveUpRestart())
	}
	// A container that ends long after its update is not overdue by that.
	if ready := condition(s.facts.Pod, corev1.PodReady); ready.Status != corev1.ConditionTrue {
		progress.Since = latest(progress.Since, ready.LastTransitionTime.Time)
	}
	step := Step{
		State: Restarting, Reason: progress.Reason, Message: progress.Message,
		Since: progress.Since, Until: progress.Recheck,
	}
	if step.Reason == ReasonResizeInProgress {
		step.State = Resizing
	}
	return s.overdueForImage(step)
}

// giveUpRestart handles a pod of which a container keeps its old environment: it is
// recreated or, where the user wants no recreation, serves as it is.
func (s *situation) giveUpRestart() Step {
	pod, progress := s.facts.Pod, s.observed.progress()
	if s.target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType && !s.frozen {
		return s.remove(ReasonNotRestarted, progress.unrestarted)
	}
	if needsMarkReady(pod) {
		step := Step{Action: MarkReady, State: Verifying, Message: "it serves with its old environment: " + progress.unrestarted}
		if state := s.target.stateAtRest(pod); state != lifecycleState(pod) {
			step.Lifecycle = state
		}
		return step
	}
	return Step{State: Stuck, Reason: ReasonNotRestarted, Since: progress.Since, Message: progress.unrestarted}
}

// serve opens the gates of a pod, and ends its drain.
func (s *situation) serve() *Step {
	pod := s.facts.Pod
	if !needsMarkReady(pod) || s.target.awaitsNode(pod) {
		return nil
	}
	if step := s.stayOut(); step != nil {
		return step
	}
	step := &Step{Action: MarkReady, State: Verifying, Since: s.observed.progress().Since, Message: "every container runs what it should"}
	if state := s.target.stateAtRest(pod); state != lifecycleState(pod) {
		step.Lifecycle = state
	}
	return step
}

// relabel writes the state in which a pod is to be when nothing is done to it.
func (s *situation) relabel() *Step {
	if step := s.rest(); step != nil && step.Action != Wait {
		return step
	}
	return nil
}

// becomeReady waits until the kubelet reports the pod ready.
func (s *situation) becomeReady() *Step {
	pod := s.facts.Pod
	ready := condition(pod, corev1.PodReady)
	if ready.Status == corev1.ConditionTrue {
		return nil
	}
	reason, message := whyNotReady(pod, ready)
	return s.overdueForImage(Step{
		State: Verifying, Reason: reason, Message: message,
		Since: latest(s.observed.progress().Since, ready.LastTransitionTime.Time),
	})
}

// nextBatch changes the containers whose turn comes when those before them are
// ready.
func (s *situation) nextBatch() *Step {
	progress := s.observed.progress()
	if container := s.observed.notReadyBefore(); container != "" {
		return s.overdue(Step{
			State: Verifying, Reason: ReasonNextBatch, Since: progress.Since,
			Message: fmt.Sprintf("container %s is not ready; %s", container, progress.Message),
		})
	}
	images, later := s.observed.splitBatch(progress.Next)
	sizes, due, refused := s.sizesWith(images)
	if refused != nil {
		return ptr.To(s.recreateOrKeepSizes(resizeRefusal(refused)))
	}
	batch := s.with(Change{Images: images, Later: later, Resize: sizes, Shrink: due})
	if refused := batch.undrainable(); refused != nil {
		return ptr.To(stayUndrained(refused, progress.Since))
	}
	if isReady(s.facts.Pod) {
		// It was not drained for the batches before.
		if step := batch.drain(); step != nil {
			return step
		}
	}
	step := &Step{
		Action: Patch, State: Patching, Message: batch.change.String() + " (the containers before are ready)",
		Change: batch.change, LeadsToPatch: true, Record: newState(s.observed, batch.change, s.observed.state.Revision, s.now),
	}
	if len(batch.change.Resize) > 0 {
		step.Action, step.State = Resize, Resizing
	}
	return step
}

// overdue returns a step, Stuck if it takes longer than the deadline of the workload.
func (s *situation) overdue(step Step) *Step {
	return overdueAfter(step, s.target.Deadline, s.now)
}

// imagePatience is how long the image of a container may fail to be pulled before its pod is
// reported as stuck. The kubelet has tried three times by then.
const imagePatience = 45 * time.Second

// overdueForImage is overdue for a pod that may wait for an image in vain: for so long since the
// kubelet began to look for it, if that is over before the deadline. While the kubelet lets a
// container wait that it has started often, it does not look, and says so in turn with the image.
func (s *situation) overdueForImage(step Step) *Step {
	isInTurn := step.Reason == crashLoopBackOff && !s.observed.progress().Proved
	if !IsImageFailure(step.Reason) && !isInTurn {
		return s.overdue(step)
	}
	looks := step
	looks.Since = latest(step.Since, s.observed.looksForImagesSince())
	if deadline := s.target.Deadline; deadline > 0 && step.Since.Add(deadline).Before(looks.Since.Add(imagePatience)) {
		return s.overdue(step)
	}
	return overdueAfter(looks, imagePatience, s.now)
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

// overdueAfter returns a step, Stuck if it takes longer than a deadline.
func overdueAfter(step Step, deadline time.Duration, now time.Time) *Step {
	if deadline <= 0 || step.Since.IsZero() {
		return &step
	}
	end := step.Since.Add(deadline)
	if !now.Before(end) {
		step.State, step.LeadsToPatch = Stuck, false
		step.Message = fmt.Sprintf("longer than %s: %s", deadline, step.Message)
		return &step
	}
	if step.Until.IsZero() || end.Before(step.Until) {
		step.Until = end
	}
	return &step
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
