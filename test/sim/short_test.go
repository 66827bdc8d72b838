// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import "testing"

// With go test -short, as make test runs it, a table of crashes has some of its rows, and
// there are fewer random runs. make test-all has them all.

// shareOfSeeds is which part of the random runs the short run has.
const shareOfSeeds = 5

// oneOf returns one of several in the short run, another one for every second k, since most
// tables have only these; otherwise all.
func oneOf[T any](k int, several ...T) []T {
	if !testing.Short() {
		return several
	}
	i := k / 2 % len(several)
	return several[i : i+1]
}

// isLeftOut reports whether the short run, which has every n-th row of a table, leaves out
// the k-th.
func isLeftOut(k, n int) bool {
	return testing.Short() && k%n != 0
}
