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

	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

var (
	pullSeeds       = flag.Int("pull-seeds", 100, "how many random runs whose images are pulled before")
	nativePullSeeds = flag.Int("native-pull-seeds", 30, "how many of them of native workloads")
)

func TestPullSeeds(t *testing.T) { runSeeds(t, "FuzzPulls", *pullSeeds, RunPulls) }

func FuzzPulls(f *testing.F) { fuzz(f, RunPulls) }

func TestNativePullSeeds(t *testing.T) {
	runSeeds(t, "FuzzNativePulls", *nativePullSeeds, RunNativePulls)
}

func FuzzNativePulls(f *testing.F) { fuzz(f, RunNativePulls) }

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

// An image that no node can pull takes no pod of a workload of Kubernetes out of service, also when
// its deadline is over; the right one goes on.
func TestNativePulls(t *testing.T) {
	for _, kind := range nativecontroller.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			ahead(&s)
			r := nativeRollout{kind: kind, wish: plain, change: toNative("missing")}
			w, before := r.beginWith(g, s)
			for range 2 * defaultDeadline {
				w.step()
				g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			}
			g.Expect(isHeld(w.native.object())).To(BeTrue())
			serving := 0
			for _, pod := range w.native.pods() {
				if before[pod.UID] && w.native.isAvailable(pod) {
					serving++
				}
			}
			g.Expect(serving).To(Equal(3), w.story.String())

			toNative("b")(w.native)
			r.rest(g, w, "with the right image")
			g.Expect(r.outcome(w, before)).To(HavePrefix("3 kept, 3 restarts"), w.story.String())
		})
	}
}

// A user who ends the hold while images are pulled is left no pod that pulls.
func TestNativePullsEndWithTheHold(t *testing.T) {
	for _, kind := range nativecontroller.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			ahead(&s)
			r := nativeRollout{kind: kind, wish: plain, change: toNative("b")}
			w, _ := r.beginWith(g, s)
			for range 60 {
				w.step()
				if len(w.pullers()) > 0 {
					break
				}
			}
			g.Expect(w.pullers()).NotTo(BeEmpty())
			w.native.askForRelease()
			r.rest(g, w, "released")
		})
	}
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
