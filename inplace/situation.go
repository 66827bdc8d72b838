// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import "time"

// situation is what the next step of one pod is decided on. Next builds it once; what decides
// about the pod are its methods.
type situation struct {
	facts    PodFacts
	observed *observed
	target   Target
	now      time.Time
	// change is what is to be changed in the pod: what it needs for the target, or what it is
	// still to become at its revision. It is known when the pod has been compared.
	change Change
	// obstacle is why the pod cannot change in place to the target; nil if it can. It is known
	// when the pod has been compared.
	obstacle *Refusal
}

func situationOf(facts PodFacts, target Target, now time.Time) *situation {
	return &situation{facts: facts, observed: facts.observedAt(now), target: target, now: now}
}

// with returns the situation with another change.
func (s *situation) with(change Change) *situation {
	other := *s
	other.change = change
	return &other
}

// stage returns the step of a pod for which it has something to do or to wait for; else nil.
type stage func(*situation) *Step

// first returns the step of the first stage that returns one; nil if none does.
func (s *situation) first(stages ...stage) *Step {
	for _, next := range stages {
		if step := next(s); step != nil {
			return step
		}
	}
	return nil
}
