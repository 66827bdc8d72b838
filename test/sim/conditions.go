// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func conditionIs(pod *corev1.Pod, conditionType corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == conditionType && c.Status == status
	})
}

func conditionSince(pod *corev1.Pod, conditionType corev1.PodConditionType) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == conditionType {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

func setPodCondition(pod *corev1.Pod, conditionType corev1.PodConditionType, isTrue bool, now time.Time) {
	status := corev1.ConditionFalse
	if isTrue {
		status = corev1.ConditionTrue
	}
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		if c.Type == conditionType {
			if c.Status != status {
				c.Status, c.LastTransitionTime = status, metav1.NewTime(now)
			}
			return
		}
	}
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: conditionType, Status: status, LastTransitionTime: metav1.NewTime(now),
	})
}

func isGated(pod *corev1.Pod) bool {
	return isGatedBy(pod, appsv1beta1.InPlaceUpdateReady)
}

func isGatedBy(pod *corev1.Pod, gate corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == gate })
}
