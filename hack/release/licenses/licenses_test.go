// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package licenses

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/licenseclassifier/v2/assets"
	. "github.com/onsi/gomega"
)

var shared = sync.OnceValues(NewScanner)

// scanner is the same for all tests, for it takes seconds to make one.
func scanner(t *testing.T) *Scanner {
	t.Helper()
	made, err := shared()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return made
}

const version = "\n\ngo 1.26.0\n"

// enterProgram makes the present folder a module with a program that links a library.
func enterProgram(t *testing.T, beside map[string]string) {
	t.Helper()
	g := NewWithT(t)
	dir := t.TempDir()
	files := map[string]string{
		"go.mod":             "module example.org/program" + version + "require example.org/library v1.0.0\nreplace example.org/library => ./library\n",
		"main.go":            "package main\n\nimport \"example.org/library\"\n\nfunc main() { library.Do() }\n",
		"library/go.mod":     "module example.org/library" + version,
		"library/library.go": "package library\n\nfunc Do() {}\n",
	}
	maps.Copy(files, beside)
	for name, content := range files {
		path := filepath.Join(dir, name)
		g.Expect(os.MkdirAll(filepath.Dir(path), 0o755)).To(Succeed())
		g.Expect(os.WriteFile(path, []byte(content), 0o644)).To(Succeed())
	}
	t.Chdir(dir)
}

// text returns a license as its authors wrote it.
func text(t *testing.T, name string) string {
	t.Helper()
	content, err := assets.ReadLicenseFile("License/" + name)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return string(content)
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		license string
		want    string
	}{
		"allowed":   {license: text(t, "MIT/pristine.txt")},
		"forbidden": {text(t, "AGPL-3.0/license.txt"), "example.org/library : the license in LICENSE is AGPL-3.0; accepted are Apache-2.0,"},
		"one of two": {
			text(t, "MIT/pristine.txt") + "\n\n\n" + text(t, "GPL-2.0/license.txt"),
			"the license in LICENSE is GPL-2.0",
		},
		"no license": {"You may look at this.\n", "example.org/library : no license was found"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			enterProgram(t, map[string]string{"library/LICENSE": test.license})

			found, err := scanner(t).Scan(t.Context(), []string{"linux"}, "./...")

			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(HaveLen(2), "the library and Go's own, not the program itself")
			err = Check(found, Allowed)
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			}
		})
	}
}

// What only one system links counts as well.
func TestScanLooksAtEverySystem(t *testing.T) {
	g := NewWithT(t)
	enterProgram(t, map[string]string{
		"main.go":         "package main\n\nfunc main() {}\n",
		"main_windows.go": "package main\n\nimport \"example.org/library\"\n\nfunc init() { library.Do() }\n",
	})
	linux, err := scanner(t).Scan(t.Context(), []string{"linux"}, "./...")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Check(linux, Allowed)).To(Succeed())
	all, err := scanner(t).Scan(t.Context(), Systems, "./...")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(Check(all, Allowed)).To(MatchError(ContainSubstring("example.org/library : no license was found")))
}

// What is linked does not depend on what go env -w has written.
func TestScanReadsNoSettings(t *testing.T) {
	g := NewWithT(t)
	enterProgram(t, map[string]string{
		"main.go":     "package main\n\nfunc main() {}\n",
		"main_own.go": "//go:build !own\n\npackage main\n\nimport \"example.org/library\"\n\nfunc init() { library.Do() }\n",
	})
	file := filepath.Join(t.TempDir(), "env")
	g.Expect(os.WriteFile(file, []byte("GOFLAGS=-tags=own\n"), 0o600)).To(Succeed())
	t.Setenv("GOENV", file)
	t.Setenv("GOFLAGS", "")

	found, err := scanner(t).Scan(t.Context(), []string{"linux"}, "./...")

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(2), "the library and Go's own")
}

func TestScanRefusesWhatDoesNotBuild(t *testing.T) {
	enterProgram(t, map[string]string{"main.go": "package main\n\nimport \"example.org/missing\"\n\nfunc main() { missing.Do() }\n"})
	_, err := scanner(t).Scan(t.Context(), []string{"linux"}, "./...")
	NewWithT(t).Expect(err).To(MatchError(ContainSubstring("example.org/missing")))
}

func TestNotices(t *testing.T) {
	g := NewWithT(t)
	enterProgram(t, map[string]string{"library/LICENSE": text(t, "Apache-2.0/pristine.txt"), "library/NOTICE": "Made by another author.\n"})
	found, err := scanner(t).Scan(t.Context(), []string{"linux"}, "./...")
	g.Expect(err).NotTo(HaveOccurred())

	notices, err := Notices("program", found)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notices).To(And(
		HavePrefix("program contains code of others."),
		ContainSubstring("example.org/library , LICENSE: Apache-2.0\n"),
		ContainSubstring("TERMS AND CONDITIONS FOR USE"),
		ContainSubstring("Made by another author.\n"),
		ContainSubstring("std go1."), ContainSubstring("Redistribution and use in source and binary forms")))
	folder, err := os.Getwd()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(notices).NotTo(ContainSubstring(folder))

	again, err := Notices("program", []Library{
		{Module: "a", Text: "One\ntext.\n"}, {Module: "b", Text: "Another."}, {Module: "c", Text: "One text."},
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(strings.Count(again, "One")).To(Equal(1), "what several have is there once")
	g.Expect(again).To(MatchRegexp(`a , : \nc , : \n=+\n\nOne\ntext.\n`))

	_, err = Notices("program", []Library{{Module: "example.org/library", Version: "v1.0.0"}})
	g.Expect(err).To(MatchError("write notices: example.org/library v1.0.0 has no license"))
}

func TestByModule(t *testing.T) {
	NewWithT(t).Expect(ByModule([]Library{
		{Module: "a", Names: []string{"MIT"}}, {Module: "a", File: "b/LICENSE", Names: []string{"ISC", "MIT"}},
	})).To(Equal(map[string][]string{"a": {"ISC", "MIT"}}))
}
