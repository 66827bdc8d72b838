// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestOutOfService(t *testing.T) {
	start := time.Now()
	at := func(seconds float64, uid types.UID, ready corev1.ConditionStatus, image string) podSeen {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}}
		pod.UID, pod.Status.Conditions = uid, []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return podSeen{pod, start.Add(time.Duration(seconds * float64(time.Second)))}
	}
	whole := []podSeen{
		at(0, "a", "True", "v1"), at(0, "b", "True", "v1"), at(1, "a", "False", "v1"), at(2, "a", "False", "v2"), at(3.5, "a", "True", "v2"),
		at(4, "b", "False", "v1"), at(5, "b", "True", "v2"), at(6, "a", "False", "v2"), at(7, "a", "True", "v2"), at(8, "a", "True", "v2"),
	}
	g := NewWithT(t)
	g.Expect(outOfService(whole, "v2")).To(Equal([]float64{1, 3.5}))
	for name, seen := range map[string][]podSeen{
		"a pod of its own":     append([]podSeen{at(0, "c", "True", "v1")}, whole...),
		"not ready in the end": append(slices.Clip(whole), at(9, "a", "False", "v2")),
		"another image":        append(slices.Clip(whole), at(9, "a", "True", "v1")),
		"one never out":        {at(0, "a", "True", "v1"), at(1, "a", "False", "v1"), at(2, "a", "True", "v2"), at(3, "b", "True", "v2")},
		"nothing":              nil,
	} {
		_, err := outOfService(seen, "v2")
		g.Expect(err).To(HaveOccurred(), name)
	}
}

func TestPullReport(t *testing.T) {
	g := NewWithT(t)
	report := pullReport{Figures: []pullFigure{
		{Kind: "StatefulSet", Policy: appsv1beta1.NoImagePull, OutOfService: []float64{15, 16}, Seconds: 40},
		{Kind: "StatefulSet", Policy: appsv1beta1.RequireImagePull, OutOfService: []float64{1, 2}, Seconds: 20},
	}}
	g.Expect(report.table()).To(ContainSubstring("| StatefulSet | 16.0 s | 2.0 s | 40.0 s | 20.0 s |"))
	g.Expect(report.check()).To(Succeed())
	report.Figures[1].OutOfService[1] = 9
	g.Expect(report.check()).To(MatchError(ContainSubstring("StatefulSet: out of service for 9.0 s")))
}
