// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command reasons writes docs/reasons.md: every reason that the operator gives, what it
// means, which is the comment of its constant, and what to do, which is the advice of
// kubectl insitu why. It fails if a reason has no advice, or advice has no reason.
//
// Run it from the root of the repository: go run ./hack/reasons
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

func main() {
	if err := generate("."); err != nil {
		fmt.Fprintln(os.Stderr, "reasons:", err)
		os.Exit(1)
	}
}

// generate reads the packages below root and writes docs/reasons.md there.
func generate(root string) error {
	known, err := find(root)
	if err != nil {
		return err
	}
	if err := check(known, report.Reasons()); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, "docs", "reasons.md"), []byte(document(known)), 0o644)
}

// check compares the reasons that there are with those that have advice.
func check(known []constant, advised []string) error {
	var errs []error
	names := map[string]bool{}
	for _, c := range known {
		names[c.value] = true
		if !slices.Contains(advised, c.value) {
			errs = append(errs, fmt.Errorf("%s.%s (%q) has no advice in cmd/kubectl-insitu/report/advice.go", c.folder, c.name, c.value))
		}
	}
	for _, reason := range advised {
		if !names[reason] {
			errs = append(errs, fmt.Errorf("advice for %q, which is no reason of %v", reason, folders))
		}
	}
	return errors.Join(errs...)
}
