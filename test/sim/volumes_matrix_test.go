// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// claimSituation is a state in which a claim is overtaken.
type claimSituation struct {
	name, class string
	// to brings it there; shows is what the claim shows then.
	to    func(*World)
	shows string
	// hold keeps the claim in a state that passes at once.
	hold func(*World)
}

var claimSituations = []claimSituation{
	{name: "asked for", class: "standard", to: claimsOfSize("3Gi", "b"), shows: "Bound, 3Gi of which 1Gi"},
	{name: "growing", class: "standard", to: claimsOfSize("3Gi", "b"), shows: "ControllerResizeInProgress"},
	{name: "stalled", class: "stalled", to: claimsOfSize("3Gi", "b"), shows: "ControllerResizeInProgress"},
	{name: "failing", class: "failing", to: claimsOfSize("3Gi", "b"), shows: "ControllerResizeError"},
	{name: "failing for ever", class: "broken", to: claimsOfSize("3Gi", "b"), shows: "ControllerResizeError"},
	{name: "waiting for its node", class: "standard", to: claimsOfSize("3Gi", "b"), shows: "NodeResizePending", hold: func(w *World) {
		for _, node := range w.nodes {
			node.silentUntil = w.clock.Now().Add(time.Minute)
		}
	}},
	{name: "failing on its node", class: "node-fails", to: claimsOfSize("3Gi", "b"), shows: "NodeResizeError"},
	{name: "mounted for too long", class: "remount", to: claimsOfSize("3Gi", "b"), shows: "NodeResizeError"},
	{name: "too large", class: "limited", to: claimsOfSize("5Gi", "b"), shows: "ControllerResizeInfeasible"},
	{name: "in use", class: "offline", to: claimsOfSize("3Gi", "b"), shows: "ControllerResizeError"},
	{name: "of a class that allows nothing", class: "fixed", to: claimsOfSize("3Gi", "b"), shows: "Bound, 1Gi of which 1Gi"},
	{name: "of a class that is missing", class: "standard", to: claimsOfSize("3Gi", "b"), shows: "Bound, 1Gi of which 1Gi", hold: func(w *World) {
		w.server.remove(objectKey{"StorageClass", "standard"})
	}},
	{name: "refused by a quota", class: "standard", to: claimsOfSize("3Gi", "b"), shows: "Bound, 1Gi of which 1Gi", hold: func(w *World) {
		w.storage.refuse = refusesStorage
	}},
	{name: "being modified", class: "standard", to: claimsWith(func(w *claimWish) { w.attributes = "slow" }), shows: "InProgress to slow"},
	{name: "refused its attributes", class: "standard", to: claimsWith(func(w *claimWish) { w.attributes = "refused" }), shows: "Infeasible to refused"},
	{name: "of attributes that are missing", class: "standard", to: claimsWith(func(w *claimWish) { w.attributes = "none" }), shows: "Bound, 1Gi of which 1Gi"},
}

// reach returns a world in which a claim is in the state of a situation.
func (s claimSituation) reach(g Gomega, kind clones) *World {
	settings := reference()
	settings.clones, settings.maxUnavailable = kind, 1
	withClaims(s.class, nil)(&settings)
	w, err := newScenario(settings)
	g.Expect(err).NotTo(HaveOccurred())
	if s.hold != nil {
		s.hold(w)
	}
	s.to(w)
	for range 400 {
		w.step()
		claims := all[*corev1.PersistentVolumeClaim](w.server)
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			if shown := describeClaim(claims[name]); shown == s.shows || !strings.Contains(s.shows, " of which ") && strings.Contains(shown, s.shows) {
				return w
			}
		}
	}
	g.Expect(s.name).To(BeEmpty(), "no claim came into this state\n%s", w.story)
	return nil
}

// claimOvertaking is what happens to a set whose claim is in that state. It returns
// what is to be done later; nil for nothing.
type claimOvertaking struct {
	name string
	do   func(*World) (later func())
}

func once(change func(*World)) func(*World) func() {
	return func(w *World) func() { change(w); return nil }
}

var claimOvertakings = []claimOvertaking{
	{"nothing", once(func(*World) {})},
	{"back", once(func(w *World) { w.askAll(revisionNamed("a"), w.settings.volumes.wish) })},
	{"larger still", once(claimsOfSize("8Gi", "b"))},
	{"smaller", once(claimsOfSize("2Gi", "b"))},
	{"another image only", once(func(w *World) { w.askAll(revisionNamed("both"), w.claims) })},
	{"other attributes", once(claimsWith(func(w *claimWish) { w.attributes = "gold" }))},
	{"a second claim", once(claimsWith(func(w *claimWish) { w.second = "wait" }))},
	{"OnDelete for claims", func(w *World) func() { w.toggleClaimStrategy(); return w.toggleClaimStrategy }},
	{"paused", func(w *World) func() { w.togglePause(); return w.togglePause }},
	{"partition raised", func(w *World) func() {
		partition := func(n int32) {
			w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To(n) })
		}
		partition(3)
		return func() { partition(0) }
	}},
	{"pod deleted", once(func(w *World) { _ = w.server.delete(objectKey{"Pod", w.names(w.set())[2]}, nil) })},
	{"scaled up", once(scaleTo(5))},
	{"scaled down", once(scaleTo(1))},
	{"node gone", func(w *World) func() {
		w.nodes[0].deadSince = w.clock.Now()
		return w.bringBackNode
	}},
	{"resizer restarted", once((*World).restartResizer)},
	{"operator killed", once(func(w *World) {
		w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(20*time.Second)
	})},
	{"class allows it", once(func(w *World) {
		w.bringBackClass()
		mutate(w.server, w.claims.class, func(class *storagev1.StorageClass) { class.AllowVolumeExpansion = ptr.To(true) })
		w.storage.refuse = nil
	})},
}

// bringBackClass makes the class of the claims again, if it is gone.
func (w *World) bringBackClass() {
	if _, exists := w.server.objects[objectKey{"StorageClass", w.claims.class}]; !exists {
		_ = w.server.create(w.storage.class(w.claims.class)) // it is not there: it was just looked for
	}
}

// lacksVolumes reports whether there are claims without a volume.
func (w *World) lacksVolumes() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(all[*corev1.PersistentVolumeClaim](w.server))), func(claim *corev1.PersistentVolumeClaim) bool {
		return claim.Status.Phase != corev1.ClaimBound
	})
}

// Claims can be overtaken in every state: what the user asks for last becomes true,
// or the status names the claim that cannot follow.
func TestAnyClaimAnyRevision(t *testing.T) {
	for i, kind := range []clones{{}, {of: cloneSets{}, reuse: true}} {
		if isLeftOut(i, 2) {
			continue
		}
		name, _, _ := strings.Cut(kind.String(), ",")
		for _, s := range claimSituations {
			for _, o := range claimOvertakings {
				t.Run(fmt.Sprintf("%s/%s/%s", name, s.name, o.name), func(t *testing.T) {
					g := NewWithT(t)
					w := s.reach(g, kind)
					w.say("now: %s, while a claim is %s", o.name, s.name)
					later := o.do(w)
					w.settleOr(150 * time.Second)
					if later != nil {
						w.say("and back")
						later()
					}
					if w.lacksVolumes() {
						w.bringBackClass() // no pod can be made without
					}
					if w.storage.refuse != nil {
						w.settle() // a new manager tries what was refused
						w.law.checkRest()
					} else {
						w.rest()
					}
					g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
					set := w.set()
					g.Expect(meta.IsStatusConditionTrue(set.Status.Conditions, appsv1beta1.ConditionReady)).To(Equal(len(set.Status.Blockers) == 0), w.story.String())
				})
			}
		}
	}
}
