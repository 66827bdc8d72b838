// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file below testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join("testdata", name+".golden")
	if *update {
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, got, 0o644)).To(Succeed())
	}
	want, err := os.ReadFile(path)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got)).To(Equal(string(want)), "go test -update ./cmd/kubectl-insitu/render writes it again; look at what changed")
}

var workloads = map[string]func() report.Workload{
	"settled":       func() report.Workload { return set(3) },
	"rolling":       rolling,
	"bad-image":     badImage,
	"hook-held":     hookHeld,
	"infeasible":    infeasible,
	"claim-blocked": claimBlocked,
	"paused":        paused,
	"partition":     partitioned,
	"unknown":       unseenWorkload,
	"native-held":   nativeHeld,
	"recreated":     recreated,
	"1000-pods":     large,
}

func TestTree(t *testing.T) {
	for name, workload := range workloads {
		for suffix, options := range map[string]Options{"": {Width: 110}, "-width-60": {Width: 60}} {
			t.Run(name+suffix, func(t *testing.T) {
				options.Now = now
				out := &bytes.Buffer{}
				NewWithT(t).Expect(Tree(out, workload(), options)).To(Succeed())
				golden(t, "tree/"+name+suffix, out.Bytes())
				expectToFit(t, out.String(), options.Width)
			})
		}
	}
}

func TestWhy(t *testing.T) {
	for name, workload := range workloads {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			NewWithT(t).Expect(Why(out, workload(), Options{Now: now})).To(Succeed())
			golden(t, "why/"+name, out.Bytes())
		})
	}
}

func expectToFit(t *testing.T, output string, width int) {
	t.Helper()
	for l := range strings.Lines(output) {
		NewWithT(t).Expect(utf8.RuneCountInString(strings.TrimSuffix(l, "\n"))).To(BeNumerically("<=", width), l)
	}
}

func TestPlan(t *testing.T) {
	for name, options := range map[string]Options{"piped": {}, "width-80": {Width: 80}, "all": {Width: 110, All: true}} {
		t.Run(name, func(t *testing.T) {
			out := &bytes.Buffer{}
			NewWithT(t).Expect(Plan(out, plan(), options)).To(Succeed())
			golden(t, "plan/"+name, out.Bytes())
			if options.Width > 0 {
				expectToFit(t, out.String(), options.Width)
			}
		})
	}
}

func TestColorsOfATree(t *testing.T) {
	out := &bytes.Buffer{}
	NewWithT(t).Expect(Tree(out, badImage(), Options{Width: 110, Color: true, Now: now})).To(Succeed())
	golden(t, "tree/bad-image-color", out.Bytes())
}

func TestAllOf1000Pods(t *testing.T) {
	g := NewWithT(t)
	out := &bytes.Buffer{}
	g.Expect(Tree(out, large(), Options{Width: 110, All: true, Now: now})).To(Succeed())
	for _, pod := range large().Pods {
		g.Expect(out.String()).To(ContainSubstring("─ " + pod.Name + " "))
	}
}

// What is written to a file has no width and no colors.
func TestOptionsFor(t *testing.T) {
	g := NewWithT(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()

	g.Expect(OptionsFor(file, now)).To(Equal(Options{Now: now}))
	g.Expect(OptionsFor(&bytes.Buffer{}, now)).To(Equal(Options{Now: now}))
}
