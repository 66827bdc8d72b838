// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package pages knows the pages that users read.
package pages

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/insitu-dev/insitu/test/docs/page"
)

// unexecuted are the pages without a command that is run, and why. A page that is in
// neither group, or in both, fails the tests.
var unexecuted = map[string]string{
	"README.md":                      "shows what docs/native.md runs",
	"docs/README.md":                 "is an index",
	"docs/alerts.md":                 "needs a person on call: test/monitoring runs its alerts",
	"docs/any-state-any-revision.md": "is the result of the simulation, written by its test",
	"docs/api.md":                    "is generated from the types",
	"docs/comparison.md":             "links to the tests that show what it claims",
	"docs/concepts.md":               "says what words mean",
	"docs/dashboard.md":              "is about a page in a browser: test/dashboard drives it",
	"docs/benchmarks.md":             "its commands take minutes and a lab of their own: test/bench",
	"docs/design.md":                 "says how it works",
	"docs/design-native.md":          "says how it works",
	"docs/design-order.md":           "says how it works",
	"docs/design-pods.md":            "says how it works",
	"docs/design-resize.md":          "says how it works",
	"docs/design-volumes.md":         "says how it works",
	"docs/figures.md":                "has figures of test/bench",
	"docs/invariants.md":             "says what always holds: test/sim",
	"docs/in-place.md":               "has tables that are generated from the code",
	"docs/logging.md":                "is for who writes code",
	"docs/machine.md":                "says what machine the others need: test/scripts and test/lab",
	"docs/performance.md":            "has figures of test/bench",
	"docs/permissions.md":            "has the rules of the manager: test/e2e/permissions_test.go",
	"docs/monitoring.md":             "needs Prometheus: test/monitoring and test/e2e run its alerts and its board",
	"docs/native-leaving.md":         "would take the manager or its switch from the others: test/install and test/policies",
	"docs/resize-blocked.md":         "needs a node without room: test/e2e fills one",
	"docs/release.md":                "needs a release; hack/release has tests",
	"docs/recreation.md":             "says how it works; test/sim and test/e2e kill the manager",
	"docs/reasons.md":                "is generated from the code",
	"docs/testing.md":                "is for who writes code",
	"docs/restore.md":                "needs snapshots that you have: test/e2e/restore_test.go",
	"docs/security.md":               "says what holds against which threat; docs/admission.md has its commands",
	"docs/tenants.md":                "needs a tenant: test/install is one",
	"docs/versions.md":               "says what stays; test/install upgrades and rolls back",
	"docs/values.md":                 "is generated from the chart; docs/install.md has its commands",
	"examples/README.md":             "is an index",
}

// Read parses all pages, by their path from the root of the repository.
func Read(root string) (map[string]*page.Page, error) {
	var paths []string
	for _, pattern := range []string{"README.md", "docs/*.md", "examples/README.md", "examples/*/README.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, fmt.Errorf("list pages: %w", err)
		}
		paths = append(paths, found...)
	}
	pages := map[string]*page.Page{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read a page: %w", err)
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return nil, fmt.Errorf("name a page: %w", err)
		}
		if pages[name], err = page.Parse(source); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return pages, nil
}
