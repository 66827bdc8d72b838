// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

var pullSeeds = flag.Int("pull-seeds", 100, "how many random runs whose images are pulled before")

func TestPullSeeds(t *testing.T) { runSeeds(t, "FuzzPulls", *pullSeeds, RunPulls) }

func FuzzPulls(f *testing.F) { fuzz(f, RunPulls) }

func ahead(s *settings) { s.ahead, s.pullTime = true, 3 }

// pullRollouts are the reference rollouts of sets whose images are pulled before.
var pullRollouts = []rollout{
	{"in place, pulled before", 9, ahead, to("b")},
	{"in place, pulled before, one container after the other", 15, func(s *settings) { s.batches = 3; ahead(s) }, to("both")},
	{"clones, in place, pulled before", 9, asClones(ahead), to("b")},
	{"in place, overtaken while it is pulled", 9, ahead, func(w *World) {
		to("missing")(w)
		w.settleOr(20 * time.Second)
		to("b")(w)
	}},
}

func TestPulls(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	ahead(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	before := w.uids()
	to("missing")(w)
	w.settleOr(time.Minute)
	g.Expect(w.failure).NotTo(HaveOccurred())
	for name, pod := range all[*corev1.Pod](w.server) {
		g.Expect(conditionIs(pod, corev1.PodReady, corev1.ConditionTrue)).To(BeTrue(), name)
		g.Expect(images(pod)).To(HaveKeyWithValue("app", "app:a"))
	}
	g.Expect(slices.Collect(maps.Keys(w.pullers()))).To(HaveLen(2), "one on each node")
	g.Expect(w.set().Status.Blockers).To(ContainElement(HaveField("Reason", "ImageNotPullable")))

	to("b")(w)
	w.settle()
	w.rules.checkRest()
	g.Expect(w.failure).NotTo(HaveOccurred())
	restarts, remade := w.restarts(before)
	g.Expect([]int{restarts, remade}).To(Equal([]int{3, 0}))
}
