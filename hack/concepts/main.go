// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command concepts writes the tables of docs/in-place.md: what happens to a live pod,
// and to a claim, for each change of a template. It asks the code that decides, with
// one change at a time, for every field that the API knows. What stands around the
// tables is written by hand.
//
// Run it from the root of the repository: go run ./hack/concepts
package main

import (
	"fmt"
	"os"

	"github.com/insitu-dev/insitu/hack/marked"
)

const (
	document       = "docs/in-place.md"
	podsGenerator  = "hack/concepts, the table of pods"
	claimGenerator = "hack/concepts, the table of claims"
)

func main() {
	if err := run(document); err != nil {
		fmt.Fprintln(os.Stderr, "concepts:", err)
		os.Exit(1)
	}
}

// run writes the tables into a document.
func run(path string) error {
	pods, err := podTable()
	if err != nil {
		return err
	}
	if err := marked.ReplaceIn(path, podsGenerator, pods); err != nil {
		return err
	}
	claims, err := claimTable()
	if err != nil {
		return err
	}

	return marked.ReplaceIn(path, claimGenerator, claims)
}
