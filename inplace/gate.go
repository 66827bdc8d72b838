// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// hasGate reports whether the pod declares the readiness gate through which it
// is taken out of service. Readiness gates of a live pod cannot change.
func hasGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(gate corev1.PodReadinessGate) bool {
		return gate.ConditionType == appsv1beta1.InPlaceUpdateReady
	})
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
// update: its readiness gate is there and False.
func IsMarkedNotReady(pod *corev1.Pod) bool {
	return hasGate(pod) && condition(pod, appsv1beta1.InPlaceUpdateReady).Status == corev1.ConditionFalse
}

// needsMarkReady reports whether the pod has the gate and nobody has said that
// it may serve.
func needsMarkReady(pod *corev1.Pod) bool {
	return hasGate(pod) && condition(pod, appsv1beta1.InPlaceUpdateReady).Status != corev1.ConditionTrue
}

// unreadySince returns since when a pod that was marked not ready has been out
// of service: both the mark and the kubelet's answer are there.
func unreadySince(pod *corev1.Pod) time.Time {
	return latest(
		condition(pod, appsv1beta1.InPlaceUpdateReady).LastTransitionTime.Time,
		condition(pod, corev1.PodReady).LastTransitionTime.Time,
	)
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
