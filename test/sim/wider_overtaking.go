// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/inplace"
)

// nextWish is a revision that the user is about to ask for: when a pod is in a state, or
// at the latest at a time.
type nextWish struct {
	revision revision
	state    inplace.State
	at       time.Time
}

// overtakenStates are the states in which updates are overtaken.
var overtakenStates = []inplace.State{inplace.Draining, inplace.Grace, inplace.Patching, inplace.Restarting, inplace.Verifying}

// overtakeTwice lets the user ask for one revision after the other, each within the
// update to the one before.
func (w *World) overtakeTwice() {
	if !w.settings.wider.overtakes {
		return
	}
	b, c := pick(w.choices, w.settings.revisions()), pick(w.choices, w.settings.revisions())
	wishes := pick(w.choices, [][]revision{{b, c}, {b, w.wish, b}, {b, c, w.wish}})
	w.ask(wishes[0])
	w.nextWishes = nil
	at := w.clock.Now()
	for _, r := range wishes[1:] {
		at = at.Add(15 * time.Second)
		w.nextWishes = append(w.nextWishes, nextWish{r, pick(w.choices, overtakenStates), at})
	}
}

// askNext lets the user ask for the next revision, if it is time.
func (w *World) askNext() {
	if w.calm {
		w.nextWishes = nil
	}
	if len(w.nextWishes) == 0 {
		return
	}
	next := w.nextWishes[0]
	if w.isAnyIn(next.state) || !w.clock.Now().Before(next.at) {
		w.nextWishes = w.nextWishes[1:]
		w.ask(next.revision)
	}
}

// isAnyIn reports whether a pod is in a state.
func (w *World) isAnyIn(state inplace.State) bool {
	for _, pod := range all[*corev1.Pod](w.server) {
		if w.stateOf(pod) == state {
			return true
		}
	}
	return false
}
