// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// DrainPolicy is the name of the policy that keeps drained pods out of service.
const DrainPolicy = "insitu-drain"

// DrainCase is one write of the status of a pod, and what the policy makes of it.
type DrainCase struct {
	Name string `json:"name"`
	// Old is stored, Write is written, Want is stored afterwards: as written, if it is nil.
	Old   DrainSide  `json:"old"`
	Write DrainSide  `json:"write"`
	Want  *DrainSide `json:"want"`
}

// DrainSide is what differs between the pods of a case.
type DrainSide struct {
	// Label is the value of the label; nil for none.
	Label *string `json:"label"`
	Ready *struct {
		Status  corev1.ConditionStatus `json:"status"`
		Reason  string                 `json:"reason"`
		Message string                 `json:"message"`
		Since   metav1.Time            `json:"since"`
	} `json:"ready"`
}

// DrainCases returns all writes.
func DrainCases() ([]DrainCase, error) {
	var table struct {
		Fragments map[string]any `json:"fragments"`
		Cases     []DrainCase    `json:"cases"`
	}
	err := read("drain.yaml", &table)

	return table.Cases, err
}

// Wanted returns what is stored after the write.
func (c DrainCase) Wanted() DrainSide {
	if c.Want != nil {
		return *c.Want
	}

	return c.Write
}

// Pod returns a pod of one container that runs. What has Ready, has it between other
// conditions: lists in a status have no order that a policy could count on.
func (s DrainSide) Pod() *corev1.Pod {
	since := metav1.Date(2026, 1, 1, 8, 0, 0, 0, time.UTC)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "198.18.0.9", Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: since},
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: since, Message: "kept"},
		}},
	}
	if s.Label != nil {
		pod.Labels[appsv1beta1.DrainedLabel] = *s.Label
	}
	if s.Ready != nil {
		pod.Status.Conditions = slices.Insert(pod.Status.Conditions, 1, corev1.PodCondition{
			Type: corev1.PodReady, Status: s.Ready.Status, Reason: s.Ready.Reason, Message: s.Ready.Message, LastTransitionTime: s.Ready.Since,
		})
	}

	return pod
}
