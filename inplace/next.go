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
)

// Target is what a pod shall become, and how.
type Target struct {
	Revision
	// Policy says what to do with what cannot change in place.
	Policy appsv1beta1.PodUpdateStrategyType
	// GracePeriod is how long a pod stays out of service before it is changed.
	// It has no effect on pods without the readiness gate.
	GracePeriod time.Duration
	// KeepReady names the containers that restart while the pod stays in
	// service.
	KeepReady []string
	// Deadline is after how long an update of one pod is reported as stuck;
	// zero means never.
	Deadline time.Duration
	// RespectBudgets is true when no serving pod is taken out of service that the
	// API server would not let anybody evict.
	RespectBudgets bool
	// Lifecycle holds the hooks of the workload; nil if it has none.
	Lifecycle *appsv1beta1.Lifecycle
	// judged holds what was found of the ways from other templates, which is the
	// same for all pods of a plan; nil outside of a plan.
	judged map[*Template]judgement
}

// judgement is what the templates alone say of the way from one to another.
type judgement struct {
	refused *Refusal
	equal   bool
}

// judge compares a template with that of the target.
func (t Target) judge(from *Template) judgement {
	if known, ok := t.judged[from]; ok {
		return known
	}
	judged := judgement{refused: refusal(from, t.Template), equal: from != nil && from.Equal(t.Template)}
	if t.judged != nil {
		t.judged[from] = judged
	}
	return judged
}

// PodFacts is what is known of one pod.
type PodFacts struct {
	Pod *corev1.Pod
	// From is the revision that the pod's label names; nil if it is not in the
	// history.
	From *Revision
	// Services holds the names of the Services whose EndpointSlices still send
	// traffic to the pod.
	Services []string
	// Asked is true when the workload asks for the deletion of the pod, as a label
	// of the pod can.
	Asked bool
	// Held is true for a pod that stays at its revision for now: the partition
	// keeps it.
	Held bool
	// Refused is set when the API server refuses the change in place that the pod
	// needs for the target.
	Refused *Refusal
	// past is known to a plan already; nil outside of one.
	past *past
}

// Read returns the facts, complete, with what the pod records of its updates. It is
// read again by each plan otherwise; the plans that share it are made for the same
// moment.
func (f PodFacts) Read(now time.Time) PodFacts {
	f.past = pastOf(f.Pod, now)
	f.past.services = f.Services
	return f
}

func (f PodFacts) pastAt(now time.Time) *past {
	if f.past == nil {
		f = f.Read(now)
	}
	return f.past
}

// Next returns the next step of a pod towards a target.
//
// Any state can be left for any target: the way is computed from what the pod
// is, not from what was intended with it before.
func Next(facts PodFacts, target Target, now time.Time) Step {
	pod := facts.Pod
	before := facts.pastAt(now)
	if step := gone(pod, target, now); step != nil {
		return *step
	}
	if AsksForDeletion(facts) {
		return remove(pod, target, Step{Reason: ReasonSpecifiedDelete, Message: whoAsks(facts)}, now)
	}
	if revisionName(pod) == target.Name {
		return finishUnlessRefused(facts, before, target, now)
	}
	change, refused := compareFacts(facts, before, target)
	if refused != nil && refused.Reason == ReasonSettling {
		return awaitCertainty(before, target, refused, now)
	}
	if refused != nil {
		return refuse(before, target, refused, now)
	}
	if facts.Refused != nil {
		return deny(facts, before, target, now)
	}
	if step := hold(before, target, change, now); step != nil {
		return *step
	}
	if !change.Restarts() || target.keepsReady(change) {
		return patch(before, change, target, now)
	}
	if step := drain(before, target, change, now); step != nil {
		return *step
	}
	return patch(before, change, target, now)
}

// compareFacts compares the pod with the target, as far as its policy allows a
// change in place. A revision that differs in nothing is always taken in place.
func compareFacts(facts PodFacts, before *past, target Target) (Change, *Refusal) {
	var from *Template
	if facts.From != nil {
		from = facts.From.Template
	}
	judged := target.judge(from)
	if judged.refused != nil {
		return Change{}, judged.refused
	}
	change, refused := before.compare(from, target.Template)
	recreates := target.Policy != appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType &&
		target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	if refused == nil && recreates && !judged.equal {
		refused = &Refusal{Reason: ReasonPolicyReCreate, Message: "podUpdatePolicy is ReCreate"}
	}
	return change, refused
}

// awaitCertainty lets an earlier change of a pod come to its end, where the next
// cannot be made before it is certain what a container runs.
func awaitCertainty(before *past, target Target, why *Refusal, now time.Time) Step {
	if step := finish(before, target, now); step.State == Restarting || step.State == Stuck {
		return step
	}
	return overdue(Step{
		State: Restarting, Reason: why.Reason, Message: why.Message, Since: before.state.UpdateTimestamp.Time, Until: why.Until,
	}, target.Deadline, now)
}

// refuse handles what cannot change in place: the pod is recreated or, where the
// user wants no recreation, stays what it is.
func refuse(before *past, target Target, refused *Refusal, now time.Time) Step {
	if target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return remove(before.pod, target, Step{Reason: refused.Reason, Message: refused.Message}, now)
	}
	if step := finish(before, target, now); step.State != Settled {
		return step
	}
	return Step{
		State:   Stuck,
		Reason:  refused.Reason,
		Message: refused.Message + "; podUpdatePolicy InPlaceOnly keeps the pod as it is: revert the field, or allow recreation with InPlaceIfPossible",
	}
}

// finishUnlessRefused is finish for a pod whose next batch the server may refuse.
func finishUnlessRefused(facts PodFacts, before *past, target Target, now time.Time) Step {
	step := finish(before, target, now)
	if step.Action == Patch && facts.Refused != nil {
		return Step{State: Stuck, Reason: facts.Refused.Reason, Message: facts.Refused.Message, Until: facts.Refused.Until}
	}
	return step
}

// deny keeps a pod whose change the server refuses in service as it is. It is not
// recreated: whoever wrote the rule that refuses it did not ask for that, and the
// rule may refuse the new pod as well.
func deny(facts PodFacts, before *past, target Target, now time.Time) Step {
	step := finish(before, target, now)
	if step.Action != Wait && step.Action != Patch {
		return step
	}
	until := facts.Refused.Until
	if !step.Until.IsZero() && step.Until.Before(until) {
		until = step.Until
	}
	return Step{State: Stuck, Reason: facts.Refused.Reason, Message: facts.Refused.Message, Until: until}
}

// drain takes the pod out of service, and returns nil when it is: the gate is
// False, the kubelet has reported the pod not ready, no EndpointSlice sends it
// traffic, and the grace period has passed since. A pod without the gate cannot
// be drained.
func drain(before *past, target Target, change Change, now time.Time) *Step {
	pod := before.pod
	if !target.canDrain(pod) && !IsMarkedNotReady(pod) {
		return nil
	}
	step := &Step{State: Draining, Change: change, Since: unreadySince(pod)}
	if !IsMarkedNotReady(pod) {
		step.Action, step.Since = MarkNotReady, time.Time{}
		step.Message = "to be updated to " + target.Name
		if target.marksNotReady() && hasGate(pod, appsv1beta1.KruisePodReady) {
			step.NotReadyKey = notReadyKeyUpdate
		}
		return step
	}
	if condition(pod, corev1.PodReady).Status == corev1.ConditionTrue {
		step.Reason, step.Message = ReasonStillReady, kubeletOn(pod.Spec.NodeName)+" has not reported the pod not ready yet"
		return overdueStep(*step, target.Deadline, now)
	}
	if len(before.services) > 0 {
		step.Reason = ReasonEndpointsReady
		step.Message = "still in the EndpointSlices of Service " + strings.Join(before.services, ", ")
		return overdueStep(*step, target.Deadline, now)
	}
	if until := unreadySince(pod).Add(target.GracePeriod); now.Before(until) {
		step.State, step.Reason, step.Until = Grace, ReasonGracePeriod, until
		step.Message = fmt.Sprintf("out of service for %s before it is changed", target.GracePeriod)
		return step
	}
	return nil
}

func patch(before *past, change Change, target Target, now time.Time) Step {
	pod := before.pod
	message := change.String()
	if why := target.whyNotDrained(pod, change); why != "" {
		message += fmt.Sprintf(" (not drained: %s)", why)
	}
	step := Step{
		Action: Patch, State: Patching, Message: message, Change: change,
		Record: newState(before, change, target.Name, now), Hash: target.Hash,
	}
	switch {
	case target.Lifecycle == nil:
		step.Lifecycle = leftOver(pod)
	case lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingNormal:
		// It has not been normal yet, and is not by an update.
	case change.Restarts():
		step.Lifecycle = appsv1beta1.LifecycleStateUpdating
	case lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingUpdate:
		step.Lifecycle = target.stateAtRest(pod) // nothing is left to wait for
	}
	return step
}

// finish brings a pod that stays at its revision back into service.
func finish(before *past, target Target, now time.Time) Step {
	pod := before.pod
	if step := gone(pod, target, now); step != nil {
		return *step
	}
	deadline, progress := target.Deadline, before.progress()
	if progress.Reason == ReasonNextBatch {
		return nextBatch(before, target, progress, now)
	}
	if !progress.Complete {
		// A container that ends long after its update is not overdue by that.
		if ready := condition(pod, corev1.PodReady); ready.Status != corev1.ConditionTrue {
			progress.Since = latest(progress.Since, ready.LastTransitionTime.Time)
		}
		return overdue(Step{
			State: Restarting, Reason: progress.Reason, Message: progress.Message,
			Since: progress.Since, Until: progress.Recheck,
		}, deadline, now)
	}
	if needsMarkReady(pod) {
		step := Step{Action: MarkReady, State: Verifying, Since: progress.Since, Message: "every container runs what it should"}
		if state := target.stateAtRest(pod); state != lifecycleState(pod) {
			step.Lifecycle = state
		}
		return step
	}
	if step := rest(pod, target, now); step != nil && step.Action != Wait {
		return *step
	}
	if ready := condition(pod, corev1.PodReady); ready.Status != corev1.ConditionTrue {
		reason, message := whyNotReady(pod, ready)
		return overdue(Step{
			State: Verifying, Reason: reason, Message: message,
			Since: latest(progress.Since, ready.LastTransitionTime.Time),
		}, deadline, now)
	}
	if step := rest(pod, target, now); step != nil {
		return *step
	}
	return Step{State: Settled}
}

// gone returns the step of a pod that does not come back, whatever is wanted of it;
// nil for others. One that has ended is replaced by its controller, not changed.
func gone(pod *corev1.Pod, target Target, now time.Time) *Step {
	switch {
	case pod.DeletionTimestamp != nil:
		return ptr.To(terminate(pod, now))
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return &Step{State: Recreating, Reason: ReasonEnded, Message: fmt.Sprintf("the pod has ended (%s %s) and is to be replaced",
			pod.Status.Phase, pod.Status.Reason)}
	case target.Lifecycle != nil && lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingDelete && !target.revives():
		return ptr.To(remove(pod, target, Step{Reason: ReasonPreDeleteHook, Message: "it was marked not ready for its deletion"}, now))
	default:
		return nil
	}
}

// nextBatch changes the containers whose turn comes when those before them are
// ready.
func nextBatch(before *past, target Target, progress Progress, now time.Time) Step {
	if container := before.notReadyBefore(); container != "" {
		return overdue(Step{
			State: Verifying, Reason: ReasonNextBatch, Since: progress.Since,
			Message: fmt.Sprintf("container %s is not ready; %s", container, progress.Message),
		}, target.Deadline, now)
	}
	change := Change{}
	change.Images, change.Later = before.splitBatch(progress.Next)
	if isReady(before.pod) && !target.keepsReady(change) {
		// It was not drained for the batches before.
		if step := drain(before, target, change, now); step != nil {
			return *step
		}
	}
	return Step{
		Action: Patch, State: Patching, Message: change.String() + " (the containers before are ready)", Change: change,
		Record: newState(before, change, before.state.Revision, now),
	}
}

func overdueStep(step Step, deadline time.Duration, now time.Time) *Step {
	return ptr.To(overdue(step, deadline, now))
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

// whyNotReady says why a pod that runs its revision is not ready: the kubelet's
// reason for a container that cannot start, else what the Ready condition says.
func whyNotReady(pod *corev1.Pod, ready corev1.PodCondition) (reason, message string) {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if waiting := status.State.Waiting; waiting != nil && cannotStart(status) {
			return waiting.Reason, fmt.Sprintf("container %s: %s", status.Name, waiting.Message)
		}
	}
	if isReadyButForKubelet(pod) {
		return ReasonPodNotReady, "its containers and gates are ready; " +
			kubeletOn(pod.Spec.NodeName) + " has not reported the pod ready"
	}
	if ready.Message == "" {
		return ReasonPodNotReady, "the pod is not ready"
	}
	return ReasonPodNotReady, "the pod is not ready: " + ready.Message
}
