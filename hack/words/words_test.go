// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestWordsAreFound(t *testing.T) {
	for text, want := range map[string]string{
		"// Nobody has seen it.":                 "Nobody",
		"a claim is made anew":                   "anew",
		"// the kubelet lets\n\t// go of a pod":  "lets\n\t// go",
		"func TestSomebodyElsesPod(t) {":         "tSomebodyE",
		"func waitsUntilItLetsGo() {":            "tLetsGo",
		"mendIt := true":                         "mendI",
		"type AnybodyElse struct{}":              "AnybodyE",
		"if letsGoOf(pod) {":                     "letsGoO",
		"amend the recommended letters, newly":   "",
		"let gone = 1; lets Google know; anewly": "",
		"trid of it":                             "",
		"Body: http.NoBody":                      "",
		`{"nobody", 65534}, "-u,nobody\n"`:       "",
	} {
		t.Run(text, func(t *testing.T) {
			g := NewWithT(t)
			found := places("a.go", []byte(text))
			if want == "" {
				g.Expect(found).To(BeEmpty())
				return
			}
			g.Expect(found).To(HaveLen(1))
			g.Expect(found[0].found).To(Equal(want))
			g.Expect(found[0].line).To(Equal(1))
		})
	}
}

func TestAReleasedChangeStays(t *testing.T) {
	g := NewWithT(t)
	changelog := "# Changelog\n\n## [Unreleased]\n\n- mended\n\n## [0.2.0]\n\n- mended\n\n## [0.1.0]\n"
	g.Expect(places("CHANGELOG.md", []byte(changelog))).To(ConsistOf(place{5, "mended", "fix, repair"}))
	g.Expect(places("docs/CHANGES.md", []byte(changelog))).To(HaveLen(2))
}
