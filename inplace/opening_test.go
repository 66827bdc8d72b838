// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestOpening(t *testing.T) {
	ended := func(phase corev1.PodPhase) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Status.Phase = phase } }
	for name, tc := range map[string]struct {
		pod   *builders.PodBuilder
		opens bool
	}{
		"no gate":               {pod: builders.Pod("sample-0", "a", alpineImage)},
		"never opened":          {pod: builders.Pod("sample-0", "a", alpineImage).Gated("", builders.Start), opens: true},
		"out of service":        {pod: builders.Pod("sample-0", "a", alpineImage).Gated(corev1.ConditionFalse, builders.Start), opens: true},
		"restarting":            {pod: changedPod(oldContainer()).Gated(corev1.ConditionFalse, builders.Start), opens: true},
		"in service":            {pod: builders.Pod("sample-0", "a", alpineImage).Gated(corev1.ConditionTrue, builders.Start)},
		"marked by us":          {pod: kruiseGated("[" + ours + "," + theirs + "]"), opens: true},
		"marked by others":      {pod: kruiseGated("[" + theirs + "]")},
		"being deleted":         {pod: builders.Pod("sample-0", "a", alpineImage).Gated(corev1.ConditionFalse, builders.Start).Deleted(builders.Start)},
		"failed":                {pod: builders.Pod("sample-0", "a", alpineImage).Gated(corev1.ConditionFalse, builders.Start).With(ended(corev1.PodFailed))},
		"ended without a fault": {pod: builders.Pod("sample-0", "a", alpineImage).Gated("", builders.Start).With(ended(corev1.PodSucceeded))},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := tc.pod.Build()

			step := Opening(pod)

			if !tc.opens {
				g.Expect(step).To(BeNil())
				return
			}
			g.Expect(step).To(HaveField("Action", MarkReady))
			for _, condition := range gateConditions(pod, *step, metav1.NewTime(after(0))) {
				if condition.Type == appsv1beta1.InPlaceUpdateReady {
					g.Expect(condition.Status).To(Equal(corev1.ConditionTrue))
				} else {
					g.Expect(condition.Message).To(Equal("["+theirs+"]"), "of the list, only our entries go")
				}
			}
		})
	}
}
