// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import "slices"

// watchCondemned names the pods that were to go and do not.
func (p *planner) watchCondemned() {
	for _, pod := range p.workload.Condemned {
		v := &view{PodState: PodState{Pod: pod, Step: Remove(pod, p.workload.Target, p.now)}}
		p.recheckAt(v.Step.Until)
		if v.Step.State == Stuck || v.Step.State == HookHeld && v.Step.Action == Wait {
			p.block(v, v.Step.State, v.Step.Reason, v.Step.Message)
		}
	}
}

// bringBack lets pods serve that are to go and stay for now, and those beside. Of those that do not, it
// names why.
func (p *planner) bringBack() {
	for _, facts := range p.workload.Lingering {
		p.letServe(facts, (*situation).comeBack, "until it goes")
	}
	for _, facts := range p.workload.Beside {
		v := p.letServe(facts, (*situation).complete, "it is not updated now")
		if v.Step.State == Settled && isReady(v.Pod) && !serves(v.Pod, &p.workload, p.now) {
			p.recheckAt(p.availableAt(v))
			p.blockUntilAvailable(v)
		}
	}
}

// letServe takes the step by which a pod serves, if there is one, and says in the note why.
func (p *planner) letServe(facts PodFacts, next func(*situation) Step, note string) *view {
	v := &view{PodState: PodState{Pod: facts.Pod}, situation: p.situationOf(facts)}
	if facts.Pod.DeletionTimestamp != nil {
		return v
	}
	v.Step = next(&v.situation)
	p.recheckAt(v.Step.Until)
	switch {
	case v.Step.State == Settled:
	case v.Step.Action == Wait:
		p.block(v, v.Step.State, v.Step.Reason, v.Step.Message)
	default:
		p.move(v, note)
	}
	return v
}

// comeBack returns the step by which a pod serves that is not to be updated any more,
// whatever it was in the middle of: its containers run, its gates are opened, our drain ends
// and its hooks release it. Nothing is changed of what it runs.
func (s *situation) comeBack() Step {
	if progress := s.observed.progress(); progress.Reason == ReasonNextBatch || progress.unrestarted != "" {
		return s.firstOf(toServe) // what is left to be changed stays as it is
	}
	return s.complete()
}

// complete returns the step by which a pod serves that is not updated now: what was begun is
// completed, container after container, and what was only prepared is taken back. It is not
// recreated.
func (s *situation) complete() Step {
	s.frozen = true
	return s.firstOf(slices.Concat([]stage{(*situation).restart}, toServe))
}

// toServe are the stages by which a pod serves whose containers run.
var toServe = []stage{(*situation).serve, (*situation).relabel, (*situation).becomeReady, (*situation).rest}

// firstOf returns the step of the first stage that has one.
func (s *situation) firstOf(stages []stage) Step {
	if step := s.first(stages...); step != nil {
		return *step
	}
	return Step{State: Settled}
}
