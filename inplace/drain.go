// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// drain takes the pod out of service, and returns nil when it is: it is marked not
// ready, by its gate or by the label, its condition Ready is False, no EndpointSlice sends
// it traffic, and the grace period has passed since. A pod without a gate cannot be drained
// where the API server does not heed the label.
func drain(before *observed, target Target, change Change, now time.Time) *Step {
	pod := before.pod
	if !target.canDrain(pod) && (!IsMarkedNotReady(pod) || isReadyDespiteLabel(pod, target)) {
		return nil
	}
	step := &Step{State: Draining, Change: change, Since: unreadySince(pod)}
	if !IsMarkedNotReady(pod) || isReadyDespiteLabel(pod, target) {
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

// Retire returns the step that takes a pod out of service that something else is about to
// delete; nil when it is out of service, or cannot be taken out. A pod that is not ready may
// be a moment later, and is marked, too.
func (f PodFacts) Retire(target Target, now time.Time) *Step {
	if isReadyDespiteLabel(f.Pod, target) {
		return nil
	}
	step := drain(f.observedAt(now), target, Change{}, now)
	if step != nil && step.Action == MarkNotReady {
		step.Message = "it goes when the hold ends"
	}
	return step
}

// isReadyDespiteLabel reports whether a pod that is drained by nothing but the label is
// ready: the API server did not heed the label for a moment. The pod is drained again.
func isReadyDespiteLabel(pod *corev1.Pod, target Target) bool {
	return isDrainedByLabel(pod) && !target.hasDrainGate(pod) && condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

// undrainable returns why a pod is not restarted that serves and cannot be drained; nil
// where it can be, or need not.
func (t Target) undrainable(pod *corev1.Pod, change Change) *Refusal {
	if !t.MustDrain || !isReady(pod) || !change.Restarts() || t.keepsReady(change) || t.canDrain(pod) {
		return nil
	}
	return t.CannotDrain
}

// waitUndrained keeps a pod as it is that cannot be drained for what it is still to become
// at its revision.
func waitUndrained(refused *Refusal, since time.Time) Step {
	return Step{
		State: Stuck, Reason: refused.Reason, Message: refused.Message, Since: since, Until: refused.Until, Denied: refused.Denied,
	}
}

// refuseUndrained handles a change of a pod that cannot be drained for it.
func refuseUndrained(before *observed, target Target, refused *Refusal, now time.Time) Step {
	if target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return refuse(before, target, refused, now)
	}
	step := stuck(before, target, refused, target.policyIs(target.Policy)+" keeps the pod as it is: "+
		"fix that, name the containers in keepReady, or allow recreation with InPlaceIfPossible", now)
	if step.State == Stuck && step.Reason == refused.Reason {
		step.Until, step.Denied = soonest(step.Until, refused.Until), refused.Denied
	}
	return step
}

func patch(before *observed, change Change, target Target, now time.Time) Step {
	pod := before.pod
	message := change.String()
	if why := target.WhyNotDrained(pod, change); why != "" {
		message += fmt.Sprintf(" (not drained: %s)", why)
	}
	step := Step{
		Action: Patch, State: Patching, Message: message, Change: change,
		Record: newState(before, change, target.Name, now), Hash: target.Hash,
	}
	if len(change.Resize) > 0 {
		step.Action, step.State = Resize, Resizing
	}
	switch {
	case target.Lifecycle == nil:
		step.Lifecycle = target.leftOver(pod)
	case lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingNormal:
		// It has not been normal yet, and is not by an update.
	case change.Restarts():
		step.Lifecycle = appsv1beta1.LifecycleStateUpdating
	case lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingUpdate:
		step.Lifecycle = target.stateAtRest(pod) // nothing is left to wait for
	}
	return step
}
