// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"slices"
	"time"
)

// Bar says what keeps a move of a plan from being made now.
type Bar struct {
	// Reason and Message become those of a blocker; there is none if Reason is empty, since
	// something else says why the pod waits.
	Reason, Message string
	// Until is when to plan again; zero if an event tells.
	Until time.Time
}

// Without returns the plan without the moves that barred names a bar of. No other pod gets
// what such a move was to take of a budget: it is to be made soon.
func (p Plan) Without(barred func(Move) *Bar) Plan {
	var moves []Move
	var blockers []Blocker
	for _, move := range p.Moves {
		bar := barred(move)
		if bar == nil {
			moves = append(moves, move)
			continue
		}
		if bar.Reason != "" {
			blockers = append(blockers, Blocker{Pod: move.Pod, State: Waiting, Reason: bar.Reason, Message: bar.Message})
		}
		if !bar.Until.IsZero() && (p.Recheck.IsZero() || bar.Until.Before(p.Recheck)) {
			p.Recheck = bar.Until
		}
	}
	p.Moves = moves
	return p.With(blockers...)
}

// With returns the plan with more blockers, the worst of all first.
func (p Plan) With(blockers ...Blocker) Plan {
	return p.Reworded(append(slices.Clip(p.Blockers), blockers...))
}

// WithCannotDrain returns the plan with what was found out of pods that cannot be drained.
func (p Plan) WithCannotDrain(why *Refusal) Plan {
	p.CannotDrain = why
	return p
}

// Reworded returns the plan with other blockers, the worst first.
func (p Plan) Reworded(blockers []Blocker) Plan {
	p.Blockers = slices.Clone(blockers)
	slices.SortStableFunc(p.Blockers, func(a, b Blocker) int { return cmp.Compare(a.severity(), b.severity()) })
	return p
}

// severity is that of the state. A claim that is stuck holds up no pod, so it comes
// after those that do.
func (b Blocker) severity() int {
	if b.Claim != nil {
		return severity(Recreating)
	}
	return severity(b.State)
}

// severity orders blockers: what needs a user comes first, what only waits for
// its turn last.
func severity(state State) int {
	switch state {
	case Stuck:
		return 0
	case Restarting:
		return 1
	case Verifying:
		return 2
	case Recreating:
		return 3
	case HookHeld, UpdatingClaims, Draining, Grace, Resizing:
		return 4
	case Settled, Waiting, Patching:
		return 5
	default:
		return 5
	}
}
