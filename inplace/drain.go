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
	if len(change.Resize) > 0 {
		step.Action, step.State = Resize, Resizing
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
