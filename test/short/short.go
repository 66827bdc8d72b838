// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package short marks the specs that make test runs. They show every feature at least
// once, on every real component. make test-all runs all specs.
package short

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
)

// Spec decorates the specs of the short run.
var Spec = ginkgo.Label("short")

// RunSpecs runs the specs of a package, with go test -short only those of the short run.
func RunSpecs(t *testing.T, description string) {
	t.Helper()
	suite, reporter := ginkgo.GinkgoConfiguration()
	if testing.Short() {
		suite.LabelFilter = Spec[0]
	}
	ginkgo.RunSpecs(t, description, suite, reporter)
}
