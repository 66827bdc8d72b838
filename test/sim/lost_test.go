// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// The answer to a write is lost and the cache does not show it: what is decided
// then on the old view must not be carried out. Here a pod was changed to b; told
// to go from a to a revision that only adds a label, the operator believes that
// only the label differs: the pod would say so and run b for ever. Told to go
// back, it believes that a drained pod only has to be put into service: it would
// take traffic while its container is stopped.
func TestWhatTheCacheDoesNotShow(t *testing.T) {
	for _, next := range []string{"label", "a", "both", "env"} {
		for _, gated := range []bool{true, false} {
			t.Run(next, func(t *testing.T) {
				g := NewWithT(t)
				s := reference()
				s.replicas, s.maxUnavailable, s.gated = 1, 1, gated
				w, err := newScenario(s)
				g.Expect(err).NotTo(HaveOccurred())
				lost := false
				w.fate = func(written write) fate {
					if lost || !written.isAbout("patch Pod") {
						return succeeds
					}
					lost, w.withheld = true, "Pod"
					for _, node := range w.nodes {
						node.silentUntil = w.clock.Now().Add(5 * time.Second)
					}
					return unanswered
				}
				to("b")(w)
				for range 60 {
					if !lost {
						w.step()
					}
				}
				g.Expect(lost).To(BeTrue(), w.story.String())
				to(next)(w)
				for range 30 {
					w.step()
				}
				w.withheld = ""
				w.rest()
				g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			})
		}
	}
}
