// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/mod/modfile"
)

// TestNothingIsCompiledTwice: a dependency has the same version in all go.mod files, so that
// Go finds it compiled, whichever of the programs was built first.
func TestNothingIsCompiledTwice(t *testing.T) {
	g := NewWithT(t)
	const root = "../.."
	paths, err := modFiles(root)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(paths).To(ContainElements("go.mod", "go.tools.mod", "test/lab/go.mod", "test/lab/sidecars/go.mod"))
	files, err := readAll(root, paths)
	g.Expect(err).NotTo(HaveOccurred())

	for _, one := range differences(files) {
		t.Errorf("%s; to give it one version: make tidy", one)
	}
}

// goMods are three files: two have a module in different versions, and one replaces it.
var goMods = map[string]string{
	"go.mod":          "module a\n\nrequire (\n\texample.com/x v1.2.0\n\texample.com/y v1.0.0 // indirect\n)\n",
	"test/lab/go.mod": "module b\n\nrequire example.com/x v1.10.0-rc.1\n\nreplace example.com/x => example.com/x v1.1.0\n",
	"other/go.mod":    "module c\n\nrequire (\n\texample.com/x v1.9.0\n\texample.com/y v1.0.0\n\texample.com/z v1.0.0\n)\n",
}

func parsed(g Gomega, texts map[string]string) map[string]*modfile.File {
	files := map[string]*modfile.File{}
	for path, text := range texts {
		file, err := modfile.Parse(path, []byte(text), nil)
		g.Expect(err).NotTo(HaveOccurred())
		files[path] = file
	}

	return files
}

func TestDifferencesNameModuleAndFiles(t *testing.T) {
	g := NewWithT(t)
	found := differences(parsed(g, goMods))

	g.Expect(found).To(HaveLen(1))
	g.Expect(found[0].String()).To(Equal("example.com/x: v1.2.0 in go.mod, v1.9.0 in other/go.mod, v1.1.0 in test/lab/go.mod"))
	g.Expect(found[0].newest()).To(Equal("v1.9.0"))
}

func TestRaise(t *testing.T) {
	g := NewWithT(t)
	files := parsed(g, goMods)

	g.Expect(raise(files, differences(files))).To(Succeed())
	texts := map[string]string{}
	for path, file := range files {
		data, err := file.Format()
		g.Expect(err).NotTo(HaveOccurred())
		texts[path] = string(data)
	}
	g.Expect(slices.Sorted(maps.Keys(texts))).To(HaveLen(3))
	g.Expect(differences(parsed(g, texts))).To(BeEmpty())
	g.Expect(texts["go.mod"]).To(Equal("module a\n\nrequire (\n\texample.com/x v1.9.0\n\texample.com/y v1.0.0 // indirect\n)\n"))
	g.Expect(texts["test/lab/go.mod"]).To(ContainSubstring("replace example.com/x => example.com/x v1.9.0\n"))
}
