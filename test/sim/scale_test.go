// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// Pods that were restarted a moment ago wait for each other to be available, when a
// StatefulSet is scaled down in order. Nothing but time makes them so: no event tells of it.
func TestScaleDownOfPodsThatAreNotAvailableYet(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	s.replicas, s.ordered, s.minReadySeconds, s.unserved = 2, true, 20, true
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.settle()
	for _, pod := range w.podsOfSet() {
		w.worker(pod).crash("app")
	}
	ready := func() int {
		count := 0
		for _, pod := range w.podsOfSet() {
			if conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
				count++
			}
		}
		return count
	}
	for w.step(); ready() < 2; w.step() {
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	}
	for _, pod := range w.podsOfSet() {
		g.Expect(w.isAvailable(pod)).To(BeFalse(), w.story.String())
	}
	scaleTo(0)(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(w.podsOfSet()).To(BeEmpty())
}
