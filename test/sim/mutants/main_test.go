// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// Code that moves takes its mutant along, or nobody knows what the simulation finds.
func TestEveryMutantHasItsPlace(t *testing.T) {
	t.Chdir("../../..")
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			_, err := m.overlay(t.TempDir())
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
		})
	}
}
