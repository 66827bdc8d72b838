// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// image is an image in a manifest.
var image = regexp.MustCompile(`(?m)image: *"?([^\s"]+)`)

// An example is found by the index, has a page that is read in some minutes, and runs the
// same images next year.
func TestExamples(t *testing.T) {
	g := NewWithT(t)
	index := readText(t, "examples", "README.md")
	folders, err := filepath.Glob(filepath.Join(root, "examples", "*", "README.md"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(folders).NotTo(BeEmpty())
	for _, path := range folders {
		name := filepath.Base(filepath.Dir(path))
		g.Expect(index).To(ContainSubstring("](" + name + "/README.md)"))
		g.Expect(wordsOutsideBlocks(readText(t, "examples", name, "README.md"))).To(And(BeNumerically(">=", 150), BeNumerically("<=", 400)), name)
		manifests, err := filepath.Glob(filepath.Join(root, "examples", name, "*.yaml"))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(manifests).NotTo(BeEmpty(), name)
		for _, manifest := range manifests {
			text, err := os.ReadFile(manifest)
			g.Expect(err).NotTo(HaveOccurred())
			for _, found := range image.FindAllStringSubmatch(string(text), -1) {
				g.Expect(found[1]).To(Or(MatchRegexp(`:\d+\.\d+`), HavePrefix("variables.")), manifest)
			}
		}
	}
}

// wordsOutsideBlocks counts the words of a page without commands and outputs.
func wordsOutsideBlocks(text string) int {
	words := 0
	for i, part := range strings.Split(text, "\n```") {
		if i%2 == 0 {
			words += len(strings.Fields(part))
		}
	}
	return words
}

func TestWordsOutsideBlocks(t *testing.T) {
	NewWithT(t).Expect(wordsOutsideBlocks("two words\n\n```console\n$ not these\n```\n\nand three more\n")).To(Equal(5))
}
