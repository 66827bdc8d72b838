// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"testing"
)

var nativeSeeds = flag.Int("native-seeds", 30, "how many random runs of native workloads")

// Random runs of native workloads, as TestSeeds.
func TestNativeSeeds(t *testing.T) { runSeeds(t, "FuzzRunNative", *nativeSeeds, RunNative) }

func FuzzRunNative(f *testing.F) { fuzz(f, RunNative) }
