// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// drain takes the pod out of service for a change that restarts containers, unless the
// user wants it to serve meanwhile; nil if it is out, or need not be.
func (s *situation) drain() *Step {
	if !s.change.Restarts() || s.target.keepsReady(s.change) {
		return nil
	}
	return s.takeOut()
}

// takeOut takes the pod out of service, and returns nil when it is: it is marked not
// ready, by its gate or by the label, its condition Ready is False, no EndpointSlice sends
// it traffic, and the grace period has passed since. A pod without a gate cannot be drained
// where the API server does not heed the label.
func (s *situation) takeOut() *Step {
	pod, target := s.facts.Pod, s.target
	if !target.canDrain(pod) && (!IsMarkedNotReady(pod) || isReadyDespiteLabel(pod, *target)) {
		return nil
	}
	step := &Step{State: Draining, Change: s.change, LeadsToPatch: true, Since: unreadySince(pod)}
	if !IsMarkedNotReady(pod) || isReadyDespiteLabel(pod, *target) {
		step.Action, step.Since = MarkNotReady, time.Time{}
		step.Message = "to be updated to " + target.Name
		if target.marksNotReady() && hasGate(pod, appsv1beta1.KruisePodReady) {
			step.NotReadyKey = notReadyKeyUpdate
		}
		return step
	}
	if condition(pod, corev1.PodReady).Status == corev1.ConditionTrue {
		step.Reason, step.Message = ReasonStillReady, kubeletOn(pod.Spec.NodeName)+" has not reported the pod not ready yet"
		return s.overdue(*step)
	}
	if len(s.facts.Services) > 0 {
		step.Reason = ReasonEndpointsReady
		step.Message = "still in the EndpointSlices of Service " + strings.Join(s.facts.Services, ", ")
		return s.overdue(*step)
	}
	if until := unreadySince(pod).Add(target.GracePeriod); s.now.Before(until) {
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
	step := situationOf(f, &target, now).takeOut()
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
func (s *situation) undrainable() *Refusal {
	t, pod := s.target, s.facts.Pod
	if !t.MustDrain || !isReady(pod) || !s.change.Restarts() || t.keepsReady(s.change) || t.canDrain(pod) {
		return nil
	}
	return t.CannotDrain
}

// stayUndrained keeps a pod as it is that cannot be drained for what it is still to become
// at its revision.
func stayUndrained(refused *Refusal, since time.Time) Step {
	return Step{
		State: Stuck, Reason: refused.Reason, Message: refused.Message, Since: since, Until: refused.Until, Denied: refused.Denied,
	}
}

// cannotDrain is the stage of a pod that cannot be drained for its change: the pod is recreated or,
// with InPlaceOnly, stays as it is.
func (s *situation) cannotDrain() *Step {
	refused := s.undrainable()
	if refused == nil {
		return nil
	}
	if s.target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return ptr.To(s.recreateIfAllowed(refused))
	}
	step := s.stayAsIs(refused, s.target.policyIs(s.target.Policy)+" keeps the pod as it is: "+
		"fix that, name the containers in keepReady, or allow recreation with InPlaceIfPossible")
	if step.State == Stuck && step.Reason == refused.Reason {
		step.Until, step.Denied = soonest(step.Until, refused.Until), refused.Denied
	}
	return &step
}

// patch makes the change of a pod.
func (s *situation) patch() *Step {
	pod, target, change := s.facts.Pod, s.target, s.change
	message := change.String()
	if why := target.WhyNotDrained(pod, change); why != "" {
		message += fmt.Sprintf(" (not drained: %s)", why)
	}
	step := &Step{
		Action: Patch, State: Patching, Message: message, Change: change, LeadsToPatch: true,
		Record: newState(s.observed, change, target.Name, s.now), Hash: target.Hash,
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
