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

// What found a bug last is tried alone: the one test, and of random runs the one seed.
func TestFindersAreNarrow(t *testing.T) {
	g := NewWithT(t)
	simulated := families()[0]
	all := simulated.arguments(simulated.mutants[0], false)

	found := finderIn(`--- FAIL: TestAnyStateAnyRevision (0.10s)
    --- FAIL: TestAnyStateAnyRevision/CloneSet/Grace/scale-in (0.02s)
        matrix_test.go:200: VIOLATED
--- FAIL: TestSeeds (1.00s)
`)
	g.Expect(found).To(Equal(&finder{Test: "TestAnyStateAnyRevision/CloneSet/Grace/scale-in"}))
	g.Expect(found.arguments(all)).To(And(
		ContainElements("-run", "^TestAnyStateAnyRevision$/^CloneSet$/^Grace$/^scale-in$", "./test/sim"),
		Not(ContainElement(ContainSubstring("TestCloneSets"))), Not(ContainElement("-first-seed")),
	))

	found = finderIn(`    seeds_test.go:83: seed-417: invariant 1: patch Pod/status
--- FAIL: TestVolumeSeeds (1.00s)
`)
	g.Expect(found.Seed).To(HaveValue(Equal(417)))
	narrow := found.arguments(all)
	g.Expect(narrow[len(narrow)-2:]).To(Equal([]string{"-first-seed", "417"}))
	for i, argument := range narrow {
		if argument == "-volume-seeds" || argument == "-seeds" {
			g.Expect(narrow[i+1]).To(Equal("1"))
		}
	}
	g.Expect(all).To(ContainElement("1000"), "the arguments of others stay")

	g.Expect(finderIn("panic: runtime error")).To(BeNil())
}

// What is recorded is of bugs that there are.
func TestFindersAreOfMutants(t *testing.T) {
	t.Chdir("../../..")
	g, names := NewWithT(t), map[string]bool{}
	for _, f := range families() {
		for _, m := range f.mutants {
			names[m.name] = true
		}
	}
	finders, err := readFinders()
	g.Expect(err).NotTo(HaveOccurred())
	for name := range finders {
		g.Expect(names).To(HaveKey(name))
	}
}
