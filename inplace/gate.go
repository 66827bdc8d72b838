// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// hasGate reports whether the pod declares a readiness gate. Readiness gates of a
// live pod cannot change.
func hasGate(pod *corev1.Pod, gate corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate })
}

// addGate gives a pod that is about to be created a readiness gate, if its template has
// none. The list may be the template's, and is not written to.
func addGate(pod *corev1.Pod, gate corev1.PodConditionType) {
	if !hasGate(pod, gate) {
		pod.Spec.ReadinessGates = append(slices.Clip(pod.Spec.ReadinessGates), corev1.PodReadinessGate{ConditionType: gate})
	}
}

// canDrain reports whether the pod can be taken out of service: by a readiness gate, or
// by the label that the API server heeds.
func (t Target) canDrain(pod *corev1.Pod) bool {
	return t.CannotDrain == nil || t.hasDrainGate(pod)
}

// hasDrainGate reports whether the pod has a readiness gate through which it is taken out
// of service.
func (t Target) hasDrainGate(pod *corev1.Pod) bool {
	return hasGate(pod, appsv1beta1.InPlaceUpdateReady) || t.marksNotReady() && hasGate(pod, appsv1beta1.KruisePodReady)
}

// condition returns a condition of the pod; the zero condition if it is not
// there.
func condition(pod *corev1.Pod, conditionType corev1.PodConditionType) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == conditionType {
			return c
		}
	}
	return corev1.PodCondition{}
}

// IsMarkedNotReady reports whether the pod was taken out of service for an
// update: a readiness gate of ours is there and False, or the pod has our label.
func IsMarkedNotReady(pod *corev1.Pod) bool {
	return isGatedOff(pod) || isMarkedFor(pod, notReadyKeyUpdate) || isDrainedByLabel(pod)
}

func isGatedOff(pod *corev1.Pod) bool {
	return hasGate(pod, appsv1beta1.InPlaceUpdateReady) && condition(pod, appsv1beta1.InPlaceUpdateReady).Status == corev1.ConditionFalse
}

// needsMarkReady reports whether it is for us to say that the pod may serve: it has a
// gate that is not open, or our label.
func needsMarkReady(pod *corev1.Pod) bool {
	return hasGate(pod, appsv1beta1.InPlaceUpdateReady) && condition(pod, appsv1beta1.InPlaceUpdateReady).Status != corev1.ConditionTrue ||
		needsKruiseReady(pod) || isDrainedByLabel(pod)
}

// needsKruiseReady reports whether a pod has the gate of KruisePodReady, and that condition
// either is not set, or is kept False by us.
func needsKruiseReady(pod *corev1.Pod) bool {
	if !hasGate(pod, appsv1beta1.KruisePodReady) {
		return false
	}
	return condition(pod, appsv1beta1.KruisePodReady).Status == "" || isMarkedFor(pod, notReadyKeyUpdate, notReadyKeyDelete)
}

// unreadySince returns since when a pod that was marked not ready has been out
// of service: both the mark and the kubelet's answer are there.
func unreadySince(pod *corev1.Pod) time.Time {
	since := condition(pod, corev1.PodReady).LastTransitionTime.Time
	if isGatedOff(pod) {
		since = latest(since, condition(pod, appsv1beta1.InPlaceUpdateReady).LastTransitionTime.Time)
	}
	if isMarkedFor(pod, notReadyKeyUpdate) {
		since = latest(since, condition(pod, appsv1beta1.KruisePodReady).LastTransitionTime.Time)
	}
	return since
}

// isReadyButForKubelet reports whether all that makes a pod ready is there, and
// the pod is marked not ready nevertheless: the kubelet has not caught up, or
// does not answer, and the pod was marked on its behalf.
func isReadyButForKubelet(pod *corev1.Pod) bool {
	return condition(pod, corev1.ContainersReady).Status == corev1.ConditionTrue &&
		!slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
			return condition(pod, gate.ConditionType).Status != corev1.ConditionTrue
		})
}
