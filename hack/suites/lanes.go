// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// lane holds suites that run one after the other.
type lane []string

// lanes are run side by side. One has all labs, one after the other: two cores can do no
// more than one lab with several specs at a time, and the lab's own tests look for what a
// lab leaves behind, so no other may be up. The other lane has what needs no lab.
var lanes = []lane{
	{"e2e", "install", "docs", "lab"},
	{"apiserver", "unit", "clients", "browser", "release", "monitoring", "lint", "floor", "seeds", "mutants"},
}

// yielding are suites that compute all the time: the others come first when cores are
// short. Those wait for clusters most of the time, and have less patience than time.
var yielding = []string{"unit", "lint", "seeds", "mutants"}

// chooseLanes returns the lanes with nothing but the wanted suites, without those that
// are empty.
func chooseLanes(wanted []string) ([]lane, error) {
	var chosen []lane
	var known []string
	for _, l := range lanes {
		known = append(known, l...)
		l = slices.DeleteFunc(slices.Clone(l), func(suite string) bool { return !slices.Contains(wanted, suite) })
		if len(l) > 0 {
			chosen = append(chosen, l)
		}
	}
	for _, suite := range wanted {
		if !slices.Contains(known, suite) {
			return nil, fmt.Errorf("no suite %q; suites: %s", suite, strings.Join(known, ", "))
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no suite is named; suites: %s", strings.Join(known, ", "))
	}

	return chosen, nil
}
