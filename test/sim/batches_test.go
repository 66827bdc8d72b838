// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// A set is scaled up while a pod serves between two batches, and gets a revision that its
// pods cannot take in place: the missing pods are made, or each would wait for the other.
func TestScaledUpBetweenBatches(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	s.replicas, s.maxUnavailable, s.ordered, s.gated, s.batches, s.policy = 2, 1, true, false, 3, appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	hookedBy(hooks{preDelete: true, marksDelete: true})(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	to("both")(w)
	isBetween := func() bool {
		return slices.ContainsFunc(slices.Collect(maps.Values(all[*corev1.Pod](w.server))), func(pod *corev1.Pod) bool {
			return inplace.Observe(pod, w.clock.Now()).Reason == inplace.ReasonNextBatch
		})
	}
	for step := 0; step < 60 && !isBetween(); step++ {
		w.step()
	}
	g.Expect(isBetween()).To(BeTrue(), w.story.String())
	scaleTo(5)(w)
	to("env")(w)
	w.settle()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(all[*corev1.Pod](w.server)).To(HaveLen(5), w.story.String())
}
