// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/inplace"
)

// An update is overtaken in a state, and what overtakes it in another one: the set comes
// to what was asked for last.
func TestOvertakenTwice(t *testing.T) {
	row := 0
	for _, kind := range []clones{{}, {of: cloneSets{}}} {
		for _, first := range overtakenStates {
			for _, second := range overtakenStates {
				for _, names := range [][2]string{{"both", "log"}, {"a", "b"}, {"env", "b"}, {"label", "a"}} {
					row++
					if isLeftOut(row, 4) {
						continue
					}
					t.Run(fmt.Sprintf("%t/%s/%s/%v", kind.is(), first, second, names), func(t *testing.T) {
						overtakeTwice(NewWithT(t), kind, [2]inplace.State{first, second}, names)
					})
				}
			}
		}
	}
}

func overtakeTwice(g Gomega, kind clones, states [2]inplace.State, names [2]string) {
	s := reference()
	s.clones, s.maxUnavailable = kind, 1
	inGrace(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	to("b")(w)
	for i, name := range names {
		for range 40 {
			w.step()
			if w.isAnyIn(states[i]) {
				break
			}
		}
		to(name)(w)
	}
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	g.Expect(w.clock.Now().Sub(start)).To(BeNumerically("<", 20*time.Minute))
}
