// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// The pods of the template before are refused by now, so those that are missing never
// come back. The next template fixes that, also where it is updated in place. Where the
// missing ones take all of maxUnavailable, nothing can be, and Kubernetes recreates.
func TestNativeTemplatesOfWhichPodsAreMissing(t *testing.T) {
	for missing := 1; missing <= 3; missing++ {
		for maxUnavailable := int32(1); maxUnavailable <= 2; maxUnavailable++ {
			t.Run(fmt.Sprintf("%d missing, maxUnavailable %d", missing, maxUnavailable), func(t *testing.T) {
				g := NewWithT(t)
				r := nativeRollout{kind: nativecontroller.Deployment, wish: func(w *wish) { w.maxUnavailable = maxUnavailable }, change: func(n *nativeWorkload) {
					n.refuse("a")
					for _, pod := range n.pods()[:missing] {
						_ = n.world.server.delete(objectKey{"Pod", pod.Name}, nil) // it is there
					}
					n.stepFor(patient)
					toNative("b")(n)
				}}
				w, before := r.begin(g)
				r.rest(g, w, "fixed")
				kept := 0
				if missing <= int(maxUnavailable) { // there is a pod more
					kept = 3 - missing
				}
				g.Expect(r.outcome(w, before)).To(HavePrefix(fmt.Sprintf("%d kept", kept)), w.story.String())
				g.Expect(r.outcome(w, before)).To(HaveSuffix(" app:b with 3"))
			})
		}
	}
}

// The same of a StatefulSet, which makes what is missing at the new revision, whatever is held.
func TestStatefulSetsOfWhichPodsAreMissing(t *testing.T) {
	for name, of := range map[string]func(*wish){
		"in order":    func(w *wish) { w.ordered, w.maxUnavailable = true, 1 },
		"in parallel": func(w *wish) { w.maxUnavailable = 1 },
		"InPlaceOnly": func(w *wish) { w.maxUnavailable, w.policy = 1, appsv1beta1.InPlaceOnlyPodUpdateStrategyType },
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := nativeRollout{kind: nativecontroller.StatefulSet, wish: of, change: func(n *nativeWorkload) {
				n.refuse("a")
				_ = n.world.server.delete(objectKey{"Pod", setName + "-1"}, nil) // it is there
				n.stepFor(time.Minute)
				toNative("b")(n)
			}}
			w, before := r.begin(g)
			w.native.stepFor(3 * time.Minute)
			g.Expect(isHeld(w.native.object())).To(BeFalse(), w.story.String())
			r.rest(g, w, "with what was missing")
			g.Expect(r.outcome(w, before)).To(HavePrefix("2 kept"), w.story.String())
		})
	}
}

// Pods are to be recreated, and the API server would accept no new ones: none that serves goes,
// however long that lasts, and the workload says it in the words of the server. When it accepts
// them, Kubernetes recreates them as always. Where it makes new pods first, the hold ends at once.
func TestNoPodGoesWhileNewOnesAreRefused(t *testing.T) {
	for name, of := range map[string]struct {
		kind     nativecontroller.Kind
		wish     func(*wish)
		released bool
	}{
		"Deployment":                     {kind: nativecontroller.Deployment, wish: plain},
		"Deployment, without a pod more": {kind: nativecontroller.Deployment, wish: func(w *wish) { w.surge, w.maxUnavailable = 0, 1 }},
		"Deployment that makes pods first": {
			kind: nativecontroller.Deployment, wish: func(w *wish) { w.replicas, w.maxUnavailable = 1, 0 }, released: true,
		},
		"StatefulSet":            {kind: nativecontroller.StatefulSet, wish: plain},
		"StatefulSet of one pod": {kind: nativecontroller.StatefulSet, wish: func(w *wish) { w.replicas, w.maxUnavailable = 1, 1 }},
		"StatefulSet in order":   {kind: nativecontroller.StatefulSet, wish: func(w *wish) { w.ordered, w.maxUnavailable = true, 1 }},
		"DaemonSet":              {kind: nativecontroller.DaemonSet, wish: plain},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			r := nativeRollout{kind: of.kind, wish: of.wish, change: func(n *nativeWorkload) {
				n.refuse("env")
				toNative("env")(n)
			}}
			w, before := r.begin(g)
			w.native.stepFor(2 * patient)
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			for _, pod := range w.native.pods() {
				g.Expect(before).To(HaveKey(pod.UID))
				g.Expect(isHealthy(pod)).To(BeTrue())
				delete(before, pod.UID)
			}
			g.Expect(before).To(BeEmpty(), "%s", w.story)
			g.Expect(isHeld(w.native.object())).NotTo(Equal(of.released), "%s", w.story)
			if !of.released {
				g.Expect(w.native.object().GetAnnotations()).To(HaveKeyWithValue(native.StatusAnnotation, And(
					ContainSubstring(`"state":"Stalled"`), ContainSubstring("no PriorityClass with name golden was found"))))
			}
			delete(w.native.refused, "env")
			r.rest(g, w, "accepted")
			g.Expect(r.outcome(w, before)).To(HavePrefix("0 kept"), w.story.String())
		})
	}
}
