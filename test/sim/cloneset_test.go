// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// asClones makes the set a CloneSet, and changes its settings.
func asClones(change func(*settings)) func(*settings) {
	return func(s *settings) {
		s.clones.of = cloneSets{}
		if change != nil {
			change(s)
		}
	}
}

// surging makes one pod more before one is taken out of service.
func surging(s *settings) {
	s.clones.maxSurge, s.maxUnavailable = 1, 0
}

func scaleTo(replicas int32) func(*World) {
	return func(w *World) {
		w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To(replicas) })
	}
}

func keepAt(partition int32) func(*World) {
	return func(w *World) {
		w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To(partition) })
	}
}

// Nothing disturbs a CloneSet: what each change comes to, and that it is at rest.
func TestCloneSets(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings func(*settings)
		changes  []func(*World)
		// updated, kept and restarts are what is left: pods at the revision asked for
		// last, pods that were there before, and restarts of containers.
		pods, updated, kept, restarts int
		// stopped: not every pod is at the revision asked for last.
		stopped bool
	}{
		{name: "in place", changes: []func(*World){to("b")}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "in place, pods beyond replicas first", settings: surging, changes: []func(*World){to("b")}, pods: 3, updated: 3, kept: 2, restarts: 2},
		{name: "labels only", settings: surging, changes: []func(*World){to("label")}, pods: 3, updated: 3, kept: 3},
		{name: "by recreation", changes: []func(*World){to("env")}, pods: 3, updated: 3},
		{name: "by recreation, pods beyond replicas first", settings: surging, changes: []func(*World){to("env")}, pods: 3, updated: 3},
		{name: "to a partition", changes: []func(*World){keepAt(2), to("b")}, pods: 3, updated: 1, kept: 3, restarts: 1, stopped: true},
		{name: "to a partition and on", changes: []func(*World){keepAt(2), to("b"), keepAt(0)}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "paused", changes: []func(*World){(*World).togglePause, to("b")}, pods: 3, kept: 3, stopped: true},
		{name: "paused and on", changes: []func(*World){(*World).togglePause, to("b"), (*World).togglePause}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "up", changes: []func(*World){scaleTo(5)}, pods: 5, updated: 5, kept: 3},
		{name: "down", changes: []func(*World){scaleTo(1)}, pods: 1, updated: 1, kept: 1},
		{name: "down with claims, and up", settings: func(s *settings) { s.claims = true }, changes: []func(*World){scaleTo(1), scaleTo(3)}, pods: 3, updated: 3, kept: 1},
		{
			name: "down, each pod held by a hook", settings: hookedBy(hooks{preDelete: true, marksDelete: true}),
			changes: []func(*World){scaleTo(1)}, pods: 1, updated: 1, kept: 1,
		},
		{
			name: "in place, each pod held by a hook", settings: hookedBy(hooks{inPlaceUpdate: true, marksUpdate: true}),
			changes: []func(*World){to("b")}, pods: 3, updated: 3, kept: 3, restarts: 3,
		},
		{
			name: "one container after the other, without a gate and spare pods", changes: []func(*World){to("both")},
			settings: func(s *settings) { surging(s); inBatches(s); s.gated = false }, pods: 3, updated: 3, kept: 2, restarts: 4,
		},
		{
			name:     "one container after the other, where pods cannot be drained, without spare pods",
			changes:  []func(*World){func(w *World) { w.setDrainPolicy(true) }, to("both")},
			settings: func(s *settings) { surging(s); inBatches(s); s.gated = false }, pods: 3, updated: 3, kept: 2, restarts: 4,
		},
		{
			name: "labels only, scaled up within a partition", changes: []func(*World){func(w *World) { keepAt(3)(w); scaleTo(5)(w); to("label")(w) }},
			pods: 5, updated: 2, kept: 3, stopped: true,
		},
		{
			name: "in place, without a gate, the policy of drains comes back in the middle", settings: func(s *settings) { s.gated = false },
			changes: []func(*World){func(w *World) { w.setDrainPolicy(true); keepAt(2)(w); to("b")(w) }, func(w *World) {
				w.setDrainPolicy(false)
				for at := w.clock.Now(); w.clock.Since(at) <= drainMemory; {
					w.step()
				}
			}, keepAt(0)},
			pods: 3, updated: 3, kept: 3, restarts: 3,
		},
		{
			name: "labels only, each pod held by a hook, without spare pods", changes: []func(*World){to("label")},
			settings: func(s *settings) { hookedBy(hooks{inPlaceUpdate: true, marksUpdate: true})(s); surging(s) }, pods: 3, updated: 3, kept: 2,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			asClones(test.settings)(&s)
			expectLeft(g, s, test.changes, left{test.pods, test.updated, test.kept, test.restarts}, test.stopped)
		})
	}
}

// left is what changes leave: pods in all, those at the revision asked for last, those that were
// there before, and restarts of containers.
type left struct{ pods, updated, kept, restarts int }

// expectLeft makes changes to a set whose pods are counted, and asserts what they leave, that the
// set is at rest unless it is stopped, and that a new manager writes nothing.
func expectLeft(g Gomega, s settings, changes []func(*World), want left, stopped bool) {
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	before := w.uids()
	for _, change := range changes {
		change(w)
		w.settle()
	}
	if !stopped {
		w.rest()
	}
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	restarts, _ := w.restarts(before)
	pods, updated, kept := all[*corev1.Pod](w.server), 0, 0
	for name, pod := range pods {
		if revisionOf(pod) == w.set().Status.UpdateRevision {
			updated++
		}
		if before[name] == pod.UID {
			kept++
		}
	}
	g.Expect(left{len(pods), updated, kept, restarts}).To(Equal(want), w.story.String())
	version := w.server.version
	w.replaceManager()
	g.Expect(w.server.version).To(Equal(version), "a new manager writes to what is settled\n%s", w.story)
}
