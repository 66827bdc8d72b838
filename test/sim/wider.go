// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
)

// wider are settings of what clusters have around a set at times, beyond what the
// other settings hold: other actors, and rules of the API server. The zero value is a
// world without them. Each setting has a file wider_NAME.go of its own.
type wider struct {
	on       bool
	ordinals ordinals
	// refuses: the server refuses creations at times.
	refuses bool
	// overtakes: revisions follow each other within the update to the one before.
	overtakes bool
	// splits: an autoscaler changes requests and limits of pods separately.
	splits bool
	// rewrites are what admission changes in objects at times.
	rewrites rewrites
	// hands: people make and delete single objects by hand; again is what becomes of a
	// set that they delete, and make again.
	hands bool
	again again
	// first is what is wrong with the first template; empty for nothing.
	first firstTemplate
}

// chosenWider returns settings as the choices have it. Runs with them are runs of
// their own (RunWider), so a new setting moves no seed of the others.
func chosenWider(c *Choices) wider {
	s := wider{
		on: true, ordinals: chosenOrdinals(c), refuses: c.oneIn(3), overtakes: c.oneIn(3), splits: c.oneIn(2), rewrites: chosenRewrites(c),
		first: pick(c, []firstTemplate{"", "", "", "", firstMissing, firstForbidden}),
	}
	// Either people or admission meddle with objects: who did what would not be known.
	if s.rewrites == (rewrites{}) {
		s.hands, s.again = c.oneIn(2), chosenAgain(c)
	}
	return s
}

func (s wider) String() string {
	if !s.on {
		return "not wider"
	}
	return fmt.Sprintf("wider: %s; creations refused %t, overtaken twice %t, requests and limits split %t, first template %q, objects by hand %t, made again %+v; admission rewrites: %s",
		s.ordinals, s.refuses, s.overtakes, s.splits, s.first, s.hands, s.again, s.rewrites)
}

// widerDisturbances are what else may happen in runs with these settings.
var widerDisturbances = slices.Concat(ordinalDisturbances, []disturbance{
	{"creations refused", (*World).refuseCreations, 5},
	{"overtaken twice", (*World).overtakeTwice, 6},
	{"admission rewrites", (*World).toggleRewrites, 3},
	{"requests or limits alone", (*World).splitSize, 5},
})

// RunWider is Run in a wider world.
func RunWider(choices *Choices) Result {
	return run(choices, chosenForWider(choices).withoutFindings())
}

// chosenForWider draws the settings of a run in a wider world.
func chosenForWider(choices *Choices) settings {
	s := chosen(choices)
	s.wider = chosenWider(choices)
	if choices.oneIn(2) {
		s.claims, s.resizes, s.volumes = true, resizes{}, chosenVolumes(choices)
	}
	if s.volumes.on && !s.clones.is() && choices.oneIn(2) {
		s.volumes = chosenRecreations(choices)
	}
	s.wider.rewrites.defaults = s.wider.rewrites.defaults && s.resizes.on
	s.unlisted = choices.oneIn(2)
	return s
}

// possibleDisturbances returns what may happen in a run with these settings.
func (w *World) possibleDisturbances() []disturbance {
	possible := slices.Clone(disturbances)
	if w.settings.daemons.on {
		possible = slices.Clone(daemonDisturbances)
	}
	if w.settings.resizes.on {
		possible = append(possible, sizeDisturbances...)
	}
	switch {
	case w.settings.volumes.recreates:
		possible = append(possible, recreateDisturbances...)
	case w.storage != nil:
		possible = append(possible, claimDisturbances...)
	}
	if w.settings.volumes.keepers {
		possible = append(possible, keeperDisturbances...)
	}
	if w.settings.wider.on {
		possible = append(possible, widerDisturbances...)
	}
	if w.settings.wider.hands {
		possible = append(possible, handDisturbances...)
	}
	if w.settings.wider.hands && w.storage != nil {
		possible = append(possible, storageHandDisturbances...)
	}
	if w.settings.wider.again.on {
		possible = append(possible, againDisturbances...)
	}
	if w.settings.roles {
		possible = slices.DeleteFunc(append(possible, roleDisturbances...), func(d disturbance) bool { return slices.Contains(unlessRoles, d.name) })
	}
	return possible
}
