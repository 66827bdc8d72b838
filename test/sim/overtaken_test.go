// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

// A kubelet acts on none, on some or on all of three changes that follow each
// other: in the end the container runs the content of the last one, with the
// environment of the last one. What it was started from before must be avoided
// when its environment is to be another.
func TestEnvironmentsThatOvertakeTheKubelet(t *testing.T) {
	names := []string{"a", "b", "level", "level b"}
	for _, pulls := range []bool{false, true} {
		for _, first := range names {
			for _, second := range names {
				for _, third := range names {
					for acts := range 2 {
						if first == second || second == third {
							continue
						}
						t.Run(fmt.Sprint(first, ", ", second, ", ", third), func(t *testing.T) {
							overtakeKubelet(NewWithT(t), pulls, acts, first, second, third)
						})
					}
				}
			}
		}
	}
}

// overtakeKubelet asks for revisions one after the other, of which the kubelet
// sees as many first as it is let, and the others when all were asked for.
func overtakeKubelet(g Gomega, pulls bool, acts int, names ...string) {
	s := reference()
	s.replicas, s.maxUnavailable, s.gated, s.reads, s.pulls = 1, 1, false, true, pulls
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	for i, name := range names {
		if i >= acts {
			for _, node := range w.nodes {
				node.silentUntil = w.clock.Now().Add(10 * time.Second)
			}
		}
		to(name)(w)
		for range 2 {
			w.step()
		}
	}
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}
