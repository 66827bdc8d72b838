// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// What CONTRIBUTING.md says of this repository.
func TestOfThisRepository(t *testing.T) {
	g := NewWithT(t)
	const root = "../.."
	g.Expect(planEdits(root)).To(BeZero(), "found out later makes another plan, see inplace.Plan.Without")
	g.Expect(ladders(root)).To(Equal(1), "engine.Round.Progress is the ladder of conditions")
	g.Expect(questions(root)).To(BeZero(), "tables say what kinds there are, see CONTRIBUTING.md")
	g.Expect(linesOfPool(root)).To(BeNumerically("<=", 130), "of which 27 are of its type")
}

// The counts count.
func TestCounts(t *testing.T) {
	g, root := NewWithT(t), t.TempDir()
	write := func(path, code string) {
		path = filepath.Join(root, path)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o750)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(code), 0o600)).To(Succeed())
	}
	write("controllers/statefulset/a.go", `package statefulset

import (
	"this is no code"
)

// The same words in both.
func f(plan *inplace.Plan, s *scope) {
	plan.Moves = nil
	s.plan.Blockers[0].State = inplace.Stuck
	s.move.Moves, other.Recheck = nil, nil
	say(v1beta1.ReasonScaling, v1beta1.ReasonUpdating)
}
`)
	write("controllers/cloneset/b.go", `package cloneset

// The same words in both.
func g(plan *inplace.Plan, x any) any {
	plan.Moves = nil
	return x.(*v1beta1.CloneSet)
}
`)
	write("cmd/c.go", `package main

func h(x any, kind string) bool {
	switch x.(type) {
	case *v1beta1.StatefulSet, *v1beta1.CloneSet:
		return true
	}
	_, is := x.(*v1beta1.CloneSet)
	return is || kind == "CloneSet" || kind != "StatefulSet"
}
`)
	write("cmd/c_test.go", "package main\n\nvar _ = x.(*v1beta1.CloneSet)\n")

	g.Expect(sharedLines(root)).To(Equal(1))
	g.Expect(linesOfBoth(root)).To(Equal(8))
	g.Expect(linesOfPool(root)).To(BeZero())
	g.Expect(planEdits(root)).To(Equal(3))
	g.Expect(ladders(root)).To(Equal(1))
	g.Expect(questions(root)).To(Equal(3))
}
