// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// againRollouts are rollouts in which the set is deleted and made again.
var againRollouts = []rollout{
	{"pods go in the background", 6, func(*settings) {}, together(to("b"), remade(inBackground, 5*time.Second))},
	{"pods go first", 6, func(*settings) {}, together(to("b"), remade(inForeground, 0))},
	{"pods stay, and caches show the set of before", 12, func(*settings) {}, together(to("b"), remade(orphaning, 0), unseen("StatefulSet", 8))},
	{"pods of clones go in the background", 9, reusingClones, together(to("b"), remade(inBackground, 5*time.Second))},
	{"pods of clones stay", 15, reusingClones, together(to("b"), remade(orphaning, 3*time.Second))},
	{"claims go with the set", 6, claimsThatGo, together(to("b"), remade(inBackground, 3*time.Second))},
	{"claims would go with the set, and stay", 10, claimsThatGo, together(to("b"), remade(orphaning, 0))},
}

var reusingClones = asClones(func(s *settings) { s.claims, s.clones.reuse = true, true })

func claimsThatGo(s *settings) { s.replicas, s.claims, s.wider.again.claimsGo = 2, true, true }

func remade(how cascade, collectsAfter time.Duration) func(*World) {
	return func(w *World) { w.remake(how, collectsAfter) }
}

// unseen keeps news of a kind from the cache for some seconds.
func unseen(kind string, seconds int) func(*World) {
	return func(w *World) {
		w.withheld = kind
		w.in(seconds, func(w *World) { w.withheld = "" })
	}
}

// The manager dies around every write after the set was made again.
func TestCrashWhereTheSetIsMadeAgain(t *testing.T) {
	t.Parallel()
	for _, r := range againRollouts {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.crashEverywhere(NewWithT(t), only(killedAfter, unanswered))
		})
	}
}

// The set is made again in any second of an update, and caches show that sooner or later:
// the pods end as its spec says.
func TestMadeAgainInAnySecond(t *testing.T) {
	for kind, shape := range map[string]func(*settings){"StatefulSet": claimsThatGo, "CloneSet": asClones(withClaimsOnly)} {
		for _, how := range cascades {
			for _, hidden := range []string{"", kind, "Pod", "ControllerRevision"} {
				t.Run(fmt.Sprintf("%s/%s/%s", kind, how, hidden), func(t *testing.T) {
					t.Parallel()
					for second := 1; second < 10; second += 2 {
						g := NewWithT(t)
						s := reference()
						shape(&s)
						w, err := newScenario(s)
						g.Expect(err).NotTo(HaveOccurred())
						to("b")(w)
						for range second {
							w.step()
						}
						together(remade(how, 2*time.Second), unseen(hidden, 6))(w)
						w.rest()
						g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
					}
				})
			}
		}
	}
}

// A claim without a pod goes with the set of before: no pod of the set that was made again
// starts on it.
func TestStartsOnNoClaimThatGoes(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	claimsThatGo(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	then(scaleTo(1), together(remade(inBackground, 10*time.Second), scaleTo(2)))(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}
