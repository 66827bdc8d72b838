// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import "time"

// situation is what the next step of one pod is decided on. Next builds it once; what decides
// about the pod are its methods.
type situation struct {
	facts    PodFacts
	observed *observed
	target   *Target
	now      time.Time
	// frozen is true when nothing is recreated or set back for its sizes: the workload is
	// paused, or left to the user's deletions.
	frozen bool
	// judged is of the plan that the pod is part of; nil outside of one.
	judged judgements
	// change is what is to be changed in the pod: what it needs for the target, or what it is
	// still to become at its revision. It is known when the pod has been compared.
	change Change
	// obstacle is why the pod cannot change in place to the target; nil if it can. It is known
	// when the pod has been compared.
	obstacle *Refusal
}

func situationOf(facts PodFacts, target *Target, now time.Time) *situation {
	s := &situation{facts: facts, observed: facts.observedAt(now), target: target, now: now}
	s.asRequested()
	return s
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

// judgement is what the templates alone say of the way from one to another.
type judgement struct {
	refused *Refusal
	equal   bool
}

// judgements are those of the ways from other templates to that of the target. They are the
// same for all pods of a plan.
type judgements map[*Template]judgement

// of judges the way from one template to that of the target, and keeps the judgement.
func (j judgements) of(from, target *Template) judgement {
	if known, ok := j[from]; ok {
		return known
	}
	judged := judgement{refused: refusal(from, target), equal: from != nil && from.Equal(target)}
	if j != nil {
		j[from] = judged
	}
	return judged
}
