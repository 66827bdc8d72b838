// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// A pod that is to go, and stays for now, serves until then. It is not updated.
func TestMakePlanBringsBackWhatLingers(t *testing.T) {
	neverOpened := builders.Pod("p1", "a", alpineImage).Gated("", builders.Start).Ready(false, builders.Start)
	for name, test := range map[string]struct {
		pod      *builders.PodBuilder
		moves    []string
		blockers []string
	}{
		"it serves":                 {pod: inService("p1")},
		"its gate was never opened": {pod: neverOpened, moves: []string{"MarkReady p1"}},
		"it is drained":             {pod: marked(inService("p1")), moves: []string{"MarkReady p1"}},
		"it restarts":               {pod: marked(inFlight("p1")), blockers: []string{"p1 Restarting NotObserved"}},
		"it is drained for a batch": {pod: marked(betweenBatches("p1").Gated("", builders.Start)), moves: []string{"MarkReady p1"}},
		"it serves between batches": {pod: betweenBatches("p1")},
		"its containers cannot run": {pod: crashing(inService("p1")), blockers: []string{"p1 Verifying CrashLoopBackOff"}},
		"it is being deleted":       {pod: inNoHurry(marked(inService("p1")))},
		"a hook holds it":           {pod: inService("p1").Label(appsv1beta1.LifecycleStateKey, string(statePreparing)), moves: []string{"SetLifecycle p1"}},
		"a user asks for it to go":  {pod: marked(inService("p1")).Label(appsv1beta1.SpecifiedDeleteKey, "true"), moves: []string{"MarkReady p1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, 1)
			w.Target.Lifecycle = &appsv1beta1.Lifecycle{InPlaceUpdate: hook(false)}
			pod := test.pod.Build()
			w.Condemned = []*corev1.Pod{pod}
			w.Lingering = []PodFacts{{Pod: pod, From: testRevisions(t)[RevisionOf(pod)]}}
			plan := MakePlan(w, planned)
			g.Expect(moves(plan)).To(ConsistOf(test.moves))
			g.Expect(blockers(plan)).To(ConsistOf(test.blockers))
			g.Expect(plan.Pods).To(BeEmpty(), "it counts for nothing")

			w.Lingering = nil
			g.Expect(MakePlan(w, planned).Moves).To(BeEmpty(), "it goes at once")
		})
	}
}

// Pods beside the others count for nothing, and are not updated. They serve, whatever was begun with
// them, and those that do not are named.
func TestMakePlanLetsPodsBesideServe(t *testing.T) {
	neverOpened := builders.Pod("p1", "a", alpineImage).Gated("", builders.Start).Ready(false, builders.Start)
	for name, test := range map[string]struct {
		pod      *builders.PodBuilder
		moves    []string
		blockers []string
	}{
		"it serves":                    {pod: inService("p1")},
		"its gate was never opened":    {pod: neverOpened, moves: []string{"MarkReady p1"}},
		"it is drained for its update": {pod: marked(inService("p1")), moves: []string{"MarkReady p1"}},
		"it restarts":                  {pod: marked(inFlight("p1")), blockers: []string{"p1 Restarting NotObserved"}},
		"its containers cannot run":    {pod: crashing(inService("p1")), blockers: []string{"p1 Verifying CrashLoopBackOff"}},
		"it is drained for a batch":    {pod: marked(betweenBatches("p1").Gated("", builders.Start)), moves: []string{"Patch p1"}},
		"it has just begun to serve":   {pod: inService("p1").Ready(true, planned.Add(-time.Second)), blockers: []string{"p1 Verifying MinReadySeconds"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, 1)
			w.MinReadySeconds = 5
			pod := test.pod.Build()
			w.Pods, w.Replicas, w.Beside = nil, 0, []PodFacts{{Pod: pod, From: testRevisions(t)[RevisionOf(pod)]}}
			plan := MakePlan(w, planned)
			g.Expect(moves(plan)).To(ConsistOf(test.moves))
			g.Expect(blockers(plan)).To(ConsistOf(test.blockers))
			g.Expect(plan.Pods).To(BeEmpty(), "it counts for nothing")
			if name == "it has just begun to serve" {
				g.Expect(plan.Recheck).To(BeTemporally("~", planned.Add(5*time.Second), 2*time.Second))
			}
		})
	}
}
