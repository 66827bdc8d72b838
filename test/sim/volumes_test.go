// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"testing"
)

var volumeSeeds = flag.Int("volume-seeds", 60, "how many random runs of sets with volumes")

// Random runs of sets whose pods have volumes, as TestSeeds.
func TestVolumeSeeds(t *testing.T) { runSeeds(t, "FuzzRunVolumes", *volumeSeeds, RunVolumes) }

func FuzzRunVolumes(f *testing.F) { fuzz(f, RunVolumes) }

var recreateSeeds = flag.Int("recreate-seeds", 40, "how many random runs of sets whose claims are recreated")

// Random runs of sets whose claims are recreated, as TestSeeds.
func TestRecreateSeeds(t *testing.T) {
	runSeeds(t, "FuzzRunRecreations", *recreateSeeds, RunRecreations)
}

func FuzzRunRecreations(f *testing.F) { fuzz(f, RunRecreations) }
