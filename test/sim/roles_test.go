// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"testing"
)

var roleSeeds = flag.Int("role-seeds", 60, "how many random runs of databases whose primary is updated last")

// Random runs of databases, as TestSeeds.
func TestRoleSeeds(t *testing.T) { runSeeds(t, "FuzzRunRoles", *roleSeeds, RunRoles) }

func FuzzRunRoles(f *testing.F) { fuzz(f, RunRoles) }
