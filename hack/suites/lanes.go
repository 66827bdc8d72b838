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

// lanes are run side by side. Two cores can do no more than one lab with several specs at
// a time: with two, specs took three times as long. So beside that of e2e there is one
// with one spec at a time, which waits for most of its time.
var lanes = []lane{
	{"e2e", "docs", "browser", "apiserver", "variants"},
	{"install", "outages", "lab", "mutants"},
	{"unit", "clients", "release", "monitoring", "floor", "seeds"},
}

// Suites that have a lab. That of the lab itself looks for what a lab leaves behind, and
// runs beside none of the others.
const labSuite = "lab"

var withLabs = []string{"e2e", "install", "outages", "docs", "variants"}

// yielding are suites that compute all the time: the others come first when cores are
// short. Those wait for clusters most of the time, and have less patience than time.
var yielding = []string{"unit", "seeds", "mutants"}

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
