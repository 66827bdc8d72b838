// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
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

// A pod that its hook has released serves until its PodDisruptionBudget allows the disruption,
// too. That waits for pods that are missing: they are made meanwhile, whatever limits or orders
// creations.
func TestPodsThatWaitForABudgetHoldUpNoCreation(t *testing.T) {
	limited := func(w *World) {
		w.changeSet(func(set *appsv1beta1.StatefulSet) {
			set.Spec.ScaleStrategy = &appsv1beta1.StatefulSetScaleStrategy{MaxUnavailable: new(intstr.FromInt(1))}
		})
	}
	for _, test := range []struct {
		name     string
		settings func(*settings)
		change   func(*World)
		// missing: a user deletes all pods but the first, when that is about to be updated.
		missing bool
		// undrained: then nothing keeps drained pods out of service any more.
		undrained bool
	}{
		{name: "deleted, CloneSet with a limit", settings: asClones(func(s *settings) { hookedBy(hooks{preDelete: true})(s); s.clones.scaleLimit = 1 }), change: to("env")},
		{name: "deleted, StatefulSet with a limit", settings: hookedBy(hooks{preDelete: true}), change: then(limited, to("env"))},
		{
			name: "updated, CloneSet with a limit", missing: true, change: to("b"),
			settings: asClones(func(s *settings) { hookedBy(hooks{inPlaceUpdate: true})(s); s.clones.scaleLimit = 1 }),
		},
		{name: "updated, StatefulSet with a limit", missing: true, settings: hookedBy(hooks{inPlaceUpdate: true}), change: then(limited, to("b"))},
		{
			name: "updated, StatefulSet in order", missing: true, change: to("b"),
			settings: func(s *settings) {
				hookedBy(hooks{inPlaceUpdate: true})(s)
				s.ordered, s.maxUnavailable, s.budgetSlack = true, 1, 0
			},
		},
		{
			name: "between two batches, CloneSet with a limit", missing: true, change: then((*World).toggleDrainPolicy, to("both")),
			settings: asClones(func(s *settings) { inBatches(s); s.gated, s.clones.scaleLimit = false, 1 }),
		},
		{
			name: "drained in vain, CloneSet with a limit", missing: true, change: to("b"), undrained: true,
			settings: asClones(func(s *settings) { s.gated, s.gracePeriod, s.clones.scaleLimit = false, time.Minute, 1 }),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			s.respects, s.budgetSlack, s.maxUnavailable = true, 1, 3
			test.settings(&s)
			s.minHookDelay, s.hookDelay = 30, 30
			w, err := newScenario(s)
			g.Expect(err).NotTo(HaveOccurred())
			test.change(w)
			if test.missing {
				leaveOne(g, w)
			}
			w.setDrainPolicy(test.undrained || w.server.drains.gone)
			w.rest()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		})
	}
}

// leaveOne waits until the first pod is in the middle of its update and has not been taken
// out of service, and lets a user delete the others.
func leaveOne(g Gomega, w *World) {
	names := slices.Sorted(maps.Keys(w.podsOfSet()))
	inTheMiddle := func() bool {
		pod, ok := get[*corev1.Pod](w.server, names[0])
		g.Expect(ok).To(BeTrue(), w.story.String())
		return lifecycleStateOf(pod) == appsv1beta1.LifecycleStatePreparingUpdate || isToCome(pod, "log") || isDrained(pod)
	}
	for range 300 {
		if !inTheMiddle() {
			w.step()
		}
	}
	g.Expect(inTheMiddle()).To(BeTrue(), w.story.String())
	for _, name := range names[1:] {
		g.Expect(w.server.delete(objectKey{"Pod", name}, nil)).To(Succeed())
	}
}

// A user makes two pods that the set takes over and does not want. With OrderedReady, the
// upper one waits for the lower one to be healthy: so their gates have to be opened, also
// that of the upper one if the lower one never becomes healthy.
func TestScaleDownOfPodsThatAUserMade(t *testing.T) {
	for _, isDrained := range []bool{false, true} {
		g := NewWithT(t)
		s := reference()
		s.ordered = true
		w, err := newScenario(s)
		g.Expect(err).NotTo(HaveOccurred())
		together(podByHand(3, labeled), podByHand(4, labeled))(w)
		if isDrained {
			mutate(w.server, setName+"-3", func(pod *corev1.Pod) { pod.Labels[appsv1beta1.DrainedLabel] = otherDrainer })
		}
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		g.Expect(w.podsOfSet()).To(HaveLen(3))
	}
}

// A set is scaled down in order while its lower pod is out of service for an update, drained
// or held by a hook, and the upper one is not healthy, which waits for the lower one.
func TestScaleDownWhilePodsAreOutForAnUpdate(t *testing.T) {
	for name, change := range map[string]func(*settings){
		"drained": func(s *settings) { s.gracePeriod = 20 * time.Second },
		"held":    hookedBy(hooks{inPlaceUpdate: true, marksUpdate: true}),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			s.replicas, s.maxUnavailable, s.ordered, s.unserved = 2, 1, true, true
			change(&s)
			w, err := newScenario(s)
			g.Expect(err).NotTo(HaveOccurred())
			to("b")(w)
			isOut := func(name string) bool {
				pod, _ := get[*corev1.Pod](w.server, name)
				return isKeptOut(pod) || isHeldBack(pod, w.set())
			}
			for w.step(); w.failure == nil && !isOut(setName+"-0"); w.step() {
				continue
			}
			mutate(w.server, setName+"-1", func(pod *corev1.Pod) { pod.Labels[appsv1beta1.DrainedLabel] = otherDrainer })
			scaleTo(0)(w)
			w.rest()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			g.Expect(w.podsOfSet()).To(BeEmpty())
		})
	}
}
