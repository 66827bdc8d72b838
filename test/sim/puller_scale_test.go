// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// manyNodes is how many nodes there are, with a hundred pods each; in the short run, with three.
const manyNodes = 20

// On many nodes with many pods, each node pulls once for all that its pods need, and no pod that
// pulls is left. A manager that finds none when it starts asks a node once more. Where a quota
// lets no pod be made, the update waits as long as the set says.
func TestPullsOnManyNodes(t *testing.T) {
	perNode := 100
	if testing.Short() {
		perNode = 3
	}
	for name, tc := range map[string]struct {
		settings func(*settings)
		// dies is how many seconds a manager lives; 0 for as long as it takes.
		dies int
		// quota: no pod is made.
		quota bool
		// stays: no pod is updated.
		stays bool
	}{
		"undisturbed":                         {},
		"clones":                              {settings: asClones(func(*settings) {})},
		"each manager dies after 3 s":         {dies: 3},
		"each manager dies after 2 s, clones": {settings: asClones(func(*settings) {}), dies: 2},
		"quota, and the set does not say":     {settings: func(s *settings) { s.unasked = true }, quota: true},
		"quota, and the set waits for a day":  {quota: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			if tc.settings != nil {
				tc.settings(&s)
			}
			ahead(&s)
			s.nodes, s.replicas, s.maxUnavailable = manyNodes, manyNodes*perNode, 2*perNode
			w, err := newScenario(s)
			g.Expect(err).NotTo(HaveOccurred())
			before := w.uids()
			if tc.quota {
				for _, kind := range []string{"Pod", pullerKind} {
					w.refuse(kind, refusers["Pod"][0], 24*time.Hour)
				}
			}
			to("both")(w)

			pulled := w.watchPulls(tc.dies, 2*time.Minute)
			g.Expect(w.failure).NotTo(HaveOccurred())
			restarts, remade := w.restarts(before)
			g.Expect([]int{min(restarts, 1), remade}).To(Equal(map[bool][]int{true: {0, 0}, false: {1, 0}}[tc.stays]))
			if tc.stays {
				return
			}
			w.settle()
			w.rules.checkRest()
			g.Expect(w.failure).NotTo(HaveOccurred())
			restarts, remade = w.restarts(before)
			g.Expect([]int{restarts, remade}).To(Equal([]int{2 * s.replicas, 0}))
			g.Expect(w.pullers()).To(BeEmpty())
			switch {
			case tc.quota:
				g.Expect(pulled).To(BeEmpty())
			case tc.dies > 0:
				g.Expect(len(pulled)).To(BeNumerically(">", manyNodes))
			default:
				g.Expect(pulled).To(HaveLen(manyNodes))
			}
			for what, times := range pulled {
				g.Expect(times).To(Equal(1), what)
			}
		})
	}
}

// watchPulls lets time pass, in which each manager lives for so many seconds. It returns how often
// what was pulled onto which node, by each manager.
func (w *World) watchPulls(lives int, period time.Duration) map[string]int {
	pulled, known, manager := map[string]int{}, sets.New[types.UID](), 0
	for i := range int(period / time.Second) {
		w.step()
		for _, puller := range w.pullers() {
			if !known.Has(puller.UID) {
				known.Insert(puller.UID)
				pulled[fmt.Sprint(slices.Sorted(maps.Values(images(puller))), " onto ", puller.Spec.NodeName, " by manager ", manager)]++
			}
		}
		if lives > 0 && i%(lives+1) == lives {
			w.killManager()
			manager++
		}
	}
	return pulled
}
