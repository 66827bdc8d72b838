// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"testing"

	. "github.com/onsi/gomega"
)

// A Pool is the smallest kind that package engine can drive. What holds for its pods, although
// it says next to nothing about it, holds for the pods of any kind that is written like it.

// asPools makes the set a Pool, and changes its settings.
func asPools(change func(*settings)) func(*settings) {
	return func(s *settings) {
		s.clones.of = pools{}
		if change != nil {
			change(s)
		}
	}
}

// poolRollouts are the reference rollouts of Pools.
var poolRollouts = []rollout{
	{"pool, in place", 9, asPools(nil), to("b")},
	{"pool, by recreation", 9, asPools(nil), to("env")},
	{"pool, scale-down", 2, asPools(nil), scaleTo(1)},
}

// Nothing disturbs a Pool: what each change comes to, and that it is at rest.
func TestPools(t *testing.T) {
	for _, test := range []struct {
		name    string
		changes []func(*World)
		// pods, updated, kept and restarts are what is left: pods in all, those at the revision
		// asked for last, those that were there before, and restarts of containers.
		pods, updated, kept, restarts int
		// stopped: not every pod is at the revision asked for last.
		stopped bool
	}{
		{name: "in place", changes: []func(*World){to("b")}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "labels only", changes: []func(*World){to("label")}, pods: 3, updated: 3, kept: 3},
		{name: "by recreation", changes: []func(*World){to("env")}, pods: 3, updated: 3},
		{name: "to a partition", changes: []func(*World){keepAt(2), to("b")}, pods: 3, updated: 1, kept: 3, restarts: 1, stopped: true},
		{name: "to a partition and on", changes: []func(*World){keepAt(2), to("b"), keepAt(0)}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "paused", changes: []func(*World){(*World).togglePause, to("b")}, pods: 3, kept: 3, stopped: true},
		{name: "up at a partition", changes: []func(*World){keepAt(2), to("b"), scaleTo(5)}, pods: 5, updated: 3, kept: 3, restarts: 1, stopped: true},
		{name: "down", changes: []func(*World){scaleTo(1)}, pods: 1, updated: 1, kept: 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			asPools(nil)(&s)
			expectLeft(g, s, test.changes, left{test.pods, test.updated, test.kept, test.restarts}, test.stopped)
		})
	}
}

// Any state of a pod of a Pool, overtaken by anything, ends ready.
func TestPoolsAnyStateAnyRevision(t *testing.T) {
	for i, s := range situations {
		for j, o := range overtakings {
			if s.name == "HookHeld" || isLeftOut(i+j, 4) {
				continue
			}
			t.Run(s.name+"/"+o.name, func(t *testing.T) { overtake(NewWithT(t), asPools(nil), s, o) })
		}
	}
}

var poolSeeds = flag.Int("pool-seeds", 60, "how many random runs of Pools")

// Random runs of Pools, as TestSeeds.
func TestPoolSeeds(t *testing.T) { runSeeds(t, "FuzzRunPools", *poolSeeds, RunPools) }

func FuzzRunPools(f *testing.F) { fuzz(f, RunPools) }
