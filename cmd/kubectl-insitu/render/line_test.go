// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestWrap(t *testing.T) {
	for name, test := range map[string]struct {
		text          string
		width, indent int
		want          string
	}{
		"fits":                      {"one two", 7, 4, "one two"},
		"any width":                 {"one two", 0, 4, "one two"},
		"at the last blank":         {"one two three four five six seven", 24, 4, "one two three four five\n    six seven"},
		"a blank right at the edge": {"one two three four five six seven", 23, 0, "one two three four five\nsix seven"},
		"a word that is too long":   {"0123456789012345678901234567", 24, 4, "012345678901234567890123\n    4567"},
		"no room for the indent":    {"0123456789 0123456789 01", 10, 4, "0123456789\n0123456789\n01"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, l := range wrap(text(test.text), test.width, test.indent) {
				got = append(got, l.show(false))
			}
			NewWithT(t).Expect(strings.Join(got, "\n")).To(Equal(test.want))
		})
	}
}

func TestCut(t *testing.T) {
	l := line{{bold, "one"}, {plain, " "}, {bad, "two"}}
	for width, want := range map[int]string{0: "one two", 7: "one two", 6: "one t…", 4: "one…", 1: "…"} {
		NewWithT(t).Expect(l.cut(width).show(false)).To(Equal(want))
	}
}

// Colors are put around what was aligned, and never into what people read as text.
func TestColors(t *testing.T) {
	g := NewWithT(t)
	l := line{{bad, "Stuck"}, {plain, " pod"}}
	g.Expect(l.show(true)).To(Equal("\x1b[31mStuck\x1b[0m pod"))
	g.Expect(l.show(false)).To(Equal("Stuck pod"))
	g.Expect(wrap(line{{bad, "one two"}}, 4, 0)).To(Equal([]line{{{bad, "one"}}, {{bad, "two"}}}), "styles stay when lines are broken")
}

func TestShortenLeft(t *testing.T) {
	g := NewWithT(t)
	g.Expect(shortenLeft("registry.example.com/shop/database:15.4", 14)).To(Equal("…database:15.4"))
	g.Expect(shortenLeft("database:15.4", 14)).To(Equal("database:15.4"))
	g.Expect(shortenLeft("registry/database:15.4", -5)).To(Equal("…base:15.4"), "something is always left")
}
