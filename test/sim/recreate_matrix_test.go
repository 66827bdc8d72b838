// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// recreateOvertakings are what happens to a set whose claims are being recreated. Each
// returns what is to be done later; nil for nothing.
var recreateOvertakings = []claimOvertaking{
	{"back", once(claimsOfClass("standard"))},
	{"another class still", once(claimsOfClass("fast-wait"))},
	{"back and forth", func(w *World) func() { claimsOfClass("standard")(w); return func() { claimsOfClass("fast")(w) } }},
	{"OnDelete for claims", func(w *World) func() {
		strategy := w.claimStrategy()
		w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) { *s = appsv1beta1.VolumeClaimUpdateStrategy{} })
		return func() { w.changeClaimStrategy(func(s *appsv1beta1.VolumeClaimUpdateStrategy) { *s = strategy }) }
	}},
	{"paused", func(w *World) func() { w.togglePause(); return w.togglePause }},
	{"scaled down and up", func(w *World) func() { scaleTo(0)(w); return func() { scaleTo(2)(w) } }},
	{"scaled up", once(scaleTo(3))},
	{"pod deleted", once(func(w *World) { _ = w.server.delete(objectKey{"Pod", setName + "-1"}, nil) })},
	{"claim deleted", once(func(w *World) { _ = w.server.delete(objectKey{"PersistentVolumeClaim", "data-" + setName + "-1"}, nil) })},
	{"snapshots deleted", once(func(w *World) {
		for _, name := range slices.Sorted(maps.Keys(all[*snapshotv1.VolumeSnapshot](w.server))) {
			_ = w.server.delete(objectKey{"VolumeSnapshot", name}, nil)
		}
	})},
	{"set made again", once((*World).orphan)},
	{"undone", once(undoAll)},
	{"a snapshot by hand", once(func(w *World) { w.snapshotOf("data-"+setName+"-1", "slow") })},
	{"node gone", func(w *World) func() {
		w.nodes[0].deadSince = w.clock.Now()
		return w.bringBackNode
	}},
	{"operator away", once(func(w *World) {
		w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(40*time.Second)
	})},
}

// A recreation can be overtaken in every second: what the user asks for last becomes
// true, no byte is lost, and nothing is left over.
func TestAnyRecreationOvertaken(t *testing.T) {
	t.Parallel()
	for _, attaches := range []bool{true, false} {
		for _, o := range recreateOvertakings {
			t.Run(fmt.Sprintf("%s/%t", o.name, attaches), func(t *testing.T) {
				t.Parallel()
				for _, second := range overtakenSeconds(attaches) {
					if what := overtakeRecreation(NewWithT(t), o, attaches, second); what != "" {
						t.Errorf("%s after %d seconds: %s", o.name, second, what)
						return
					}
				}
			})
		}
	}
}

// overtakenSeconds are the seconds of a recreation in which it is overtaken: every other
// one, of which the two kinds of volumes have one half each, or all; every sixth in the
// short run.
func overtakenSeconds(odd bool) []int {
	var seconds []int
	for second := range 34 {
		if (*everyFate || (second%2 == 1) == odd) && !isLeftOut(second/2, 4) {
			seconds = append(seconds, second)
		}
	}
	return seconds
}

func overtakeRecreation(g Gomega, o claimOvertaking, attaches bool, second int) string {
	s := reference()
	recreatingFew(2, func(s *settings) {
		s.volumes.attaches = attaches
		s.volumes.strategy.Recreate.TimeoutSeconds = nil
	})(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	claimsOfClass("fast")(w)
	for range second {
		w.step()
	}
	w.say("now: %s", o.name)
	later := o.do(w)
	for range 100 {
		w.step()
	}
	if later != nil {
		w.say("and back")
		later()
	}
	w.rest()
	if w.failure == nil {
		w.violateUnlessServing()
	}
	if w.failure != nil {
		return fmt.Sprintf("%v\n%s", w.failure, w.story)
	}
	return ""
}

// violateUnlessServing asserts that all pods that are wanted serve, with claims that have
// their volumes.
func (w *World) violateUnlessServing() {
	for _, name := range w.names(w.set()) {
		pod, there := get[*corev1.Pod](w.server, name)
		claim, has := get[*corev1.PersistentVolumeClaim](w.server, "data-"+name)
		if !there || !w.isAvailable(pod) || !has || claim.Status.Phase != corev1.ClaimBound {
			w.violate("in the end, %s does not serve", name)
		}
	}
}
