// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// The pods of the template before are refused by now, so those that are missing never
// come back. The next template mends that, also where it is updated in place. Where the
// missing ones take all of maxUnavailable, nothing can be, and Kubernetes recreates.
func TestNativeTemplatesOfWhichPodsAreMissing(t *testing.T) {
	for missing := 1; missing <= 3; missing++ {
		for maxUnavailable := int32(1); maxUnavailable <= 2; maxUnavailable++ {
			t.Run(fmt.Sprintf("%d missing, maxUnavailable %d", missing, maxUnavailable), func(t *testing.T) {
				g := NewWithT(t)
				r := nativeRollout{kind: nativecontroller.Deployment, wish: func(w *wish) { w.maxUnavailable = maxUnavailable }, change: func(n *nativeWorkload) {
					n.refused.Insert("a")
					for _, pod := range n.pods()[:missing] {
						_ = n.world.server.delete(objectKey{"Pod", pod.Name}, nil) // it is there
					}
					n.stepFor(patient)
					toNative("b")(n)
				}}
				w, before := r.begin(g)
				r.rest(g, w, "mended")
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
				n.refused.Insert("a")
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
