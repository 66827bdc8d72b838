// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"testing"
)

var widerSeeds = flag.Int("wider-seeds", 60, "how many random runs in a wider world")

// Random runs in a wider world, as TestSeeds.
func TestWiderSeeds(t *testing.T) { runSeeds(t, "FuzzRunWider", *widerSeeds, RunWider) }

func FuzzRunWider(f *testing.F) { fuzz(f, RunWider) }
