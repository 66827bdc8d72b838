// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "errors"

var errImage = errors.New("a policy refuses the image")

// chaosFor is how long a run is disturbed at least.
const chaosFor = 150

// Result is what a run comes to.
type Result struct {
	// Err is the first violation; nil for a good run.
	Err error
	// Story tells what happened, one line an event.
	Story string
	// Coverage is what happened to pods in which state.
	Coverage *Coverage
}

// Run runs a set through a time of disturbances, and brings it to rest.
func Run(choices *Choices) Result {
	return run(choices, chosen(choices))
}

// RunVolumes is Run for a set whose pods have volumes of their own.
func RunVolumes(choices *Choices) Result {
	s := chosen(choices)
	s.claims, s.resizes, s.volumes = true, resizes{}, chosenVolumes(choices)
	return run(choices, s)
}

// RunRecreations is Run for a set whose claims are recreated.
func RunRecreations(choices *Choices) Result {
	s := chosen(choices)
	s.claims, s.clones, s.resizes, s.volumes = true, clones{}, resizes{}, chosenRecreations(choices)
	return run(choices, s)
}

// RunPools is Run for a Pool, whose pods have neither claims, hooks nor an identity.
func RunPools(choices *Choices) Result {
	s := chosen(choices)
	s.replicas, s.maxUnavailable = 1+choices.intN(5), 1+choices.intN(3)
	s.ordered, s.unordered, s.claims, s.deleteScaled, s.hooked, s.marked = false, false, false, false, false, false
	s.clones = clones{of: pools{}}
	return run(choices, s)
}

// RunDaemons is Run for a DaemonSet, whose nodes come, go and change. In the end, a partition and
// a selector of nodes have their say.
func RunDaemons(choices *Choices) Result {
	w, err := disturbed(choices, chosenDaemons(choices))
	if err != nil {
		return Result{Err: err, Coverage: NewCoverage()}
	}
	w.calmNodes()
	w.calmDown(pick(choices, w.settings.good()))
	w.rest()
	w.updateSome()
	w.rest()
	return w.result()
}

func run(choices *Choices, s settings) Result {
	w, err := disturbed(choices, s)
	if err != nil {
		return Result{Err: err, Coverage: NewCoverage()}
	}
	w.calmDown(pick(choices, w.settings.good()))
	w.clearTheWay()
	w.rest()
	return w.result()
}

// disturbed returns a world after a time of disturbances.
func disturbed(choices *Choices, s settings) (*World, error) {
	w, err := newWorld(choices, s)
	if err != nil {
		return nil, err
	}
	for range chaosFor + choices.intN(100) {
		if w.failure == nil {
			w.step()
		}
	}
	return w, nil
}

func (w *World) result() Result {
	return Result{Err: w.failure, Story: w.story.String(), Coverage: w.coverage}
}

// rest brings everything to rest, and asserts that it is as it should be and
// stays so: a new manager that finds it writes nothing (invariant 6). It says what a driver
// says that tries for ever what cannot be.
func (w *World) rest() {
	w.settle()
	if w.failure != nil {
		return
	}
	if w.lateArrival {
		w.replaceManager() // nothing told this one of a status or a revision that arrived
		w.settle()
	}
	w.rules.checkRest()
	version, tries := w.version(), w.storage.tries()
	w.replaceManager()
	if w.version() != version && w.storage.tries() == tries {
		w.violate("invariant 6: a new manager writes to what is settled")
	}
	w.checkMetricsAtRest()
}

// replaceManager lets a new manager find what is there.
func (w *World) replaceManager() {
	w.manager.client.dead, w.manager.startsAt = true, w.clock.Now()
	for range 30 {
		w.step()
	}
}
