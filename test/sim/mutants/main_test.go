// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

// Code that moves takes its mutant along, or nothing tells any more what the tests find.
func TestEveryMutantHasItsPlace(t *testing.T) {
	t.Chdir("../../..")
	for _, f := range families() {
		for _, m := range f.mutants {
			t.Run(m.name, func(t *testing.T) {
				_, err := m.overlay(t.TempDir())
				NewWithT(t).Expect(err).NotTo(HaveOccurred())
			})
		}
	}
}

// A name selects one bug, or one family.
func TestMutantsHaveNamesOfTheirOwn(t *testing.T) {
	g, seen := NewWithT(t), map[string]bool{}
	for _, f := range families() {
		g.Expect(seen).NotTo(HaveKey(f.name))
		seen[f.name] = true
		for _, m := range f.mutants {
			g.Expect(seen).NotTo(HaveKey(m.name))
			seen[m.name] = true
		}
	}
}

// What make test has is less, and asks for no more random runs.
func TestShortArguments(t *testing.T) {
	g := NewWithT(t)
	for _, f := range families() {
		short := f.arguments(f.mutants[0], true)
		g.Expect(short[0]).To(Equal("-short"))
		g.Expect(short).NotTo(ContainElement("-seeds"))
		g.Expect(f.arguments(f.mutants[0], false)).NotTo(ContainElement("-short"))
	}
	simulated := families()[0]
	g.Expect(simulated.arguments(simulated.mutants[0], false)).To(ContainElements("-args", "-seeds"))
}
