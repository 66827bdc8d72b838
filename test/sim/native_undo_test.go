// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// promoted returns the ReplicaSet that an update in place has given its template, while
// the history is still to follow; nil if there is none.
func (n *nativeWorkload) promoted() *appsv1.ReplicaSet {
	found := n.replicaSets()
	i := slices.IndexFunc(found, func(rs *appsv1.ReplicaSet) bool { return rs.Annotations[native.PreviousRevisionAnnotation] != "" })
	if i < 0 {
		return nil
	}
	return found[i]
}

// stepFor lets a time go by.
func (n *nativeWorkload) stepFor(d time.Duration) {
	for range int(d / time.Second) {
		n.world.step()
	}
}

// A user opts out while a ReplicaSet is promoted, so that stays unfinished. kubectl
// rollout undo brings its annotations to the Deployment, and the controller of
// Deployments copies them from there. The next update in place comes to its end.
func TestUndoBringsNoPromotion(t *testing.T) {
	g := NewWithT(t)
	r := nativeRollout{kind: nativecontroller.Deployment, wish: plain, change: func(n *nativeWorkload) {
		toNative("b")(n)
		for n.world.failure == nil && n.promoted() == nil {
			n.world.step()
		}
		// The manager reads no workload that has opted out.
		n.world.manager.client.dead, n.world.manager.startsAt = true, n.world.clock.Now().Add(time.Hour)
		n.wish.policy = ""
		n.ask(false)
		n.stepFor(time.Minute)
		toNative("env")(n)
		n.stepFor(time.Minute)
		n.rolloutUndo(n.promoted())
		n.stepFor(time.Minute)
		n.world.manager.startsAt = n.world.clock.Now()
	}}
	w, _ := r.begin(g)
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(w.native.object().GetAnnotations()).To(HaveKey(native.PreviousRevisionAnnotation), "the undo has brought it")

	w.native.wish.policy = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	w.native.ask(false)
	toNative("both")(w.native)
	r.rest(g, w, "the next update")
	g.Expect(w.native.promoted()).To(BeNil())
}
