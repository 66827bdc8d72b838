// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

func TestEveryReasonHasAdvice(t *testing.T) {
	g := NewWithT(t)
	known, err := find("../..")
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(check(known, report.Reasons())).To(Succeed())
	for _, folder := range folders {
		hasReasons := slices.ContainsFunc(known, func(c constant) bool { return c.folder == folder })
		g.Expect(hasReasons).To(BeTrue(), "%s has none: it was moved, or its reasons are called otherwise", folder)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	g := NewWithT(t)
	known := []constant{{folder: "inplace", name: "ReasonNew", value: "New"}}

	g.Expect(check(known, []string{"New"})).To(Succeed())
	g.Expect(check(known, nil)).To(MatchError(ContainSubstring(`inplace.ReasonNew ("New") has no advice`)))
	g.Expect(check(known, []string{"New", "Old"})).To(MatchError(ContainSubstring(`advice for "Old"`)))
}

func TestFind(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		want   []constant
		fails  string
	}{
		"with comments": {
			source: `const (
				// ReasonOne: there is
				// one.
				ReasonOne = "One"
				// Other: no reason.
				Other = "Other"
				reasonTwo = "Two" // not a comment that counts
			)`,
			fails: "no comment says what reasonTwo means",
		},
		"of a type": {
			source: `const (
				// Removed means that it is removed.
				Removed RefusalReason = "ResizeRemoved"
				// Kept means nothing here.
				Kept State = "Kept"
			)`,
			want: []constant{{"inplace", "Removed", "ResizeRemoved", "it is removed"}},
		},
		"alone": {
			source: "// ReasonOne is the reason of a pod that waits, see Facts.One.\nconst ReasonOne = \"One\"",
			want:   []constant{{"inplace", "ReasonOne", "One", "a pod that waits"}},
		},
		"no text": {source: "// ReasonOne: one.\nconst ReasonOne = one", fails: "the value of ReasonOne is no text"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			root := t.TempDir()
			g.Expect(os.Mkdir(filepath.Join(root, "inplace"), 0o755)).To(Succeed())
			g.Expect(os.WriteFile(filepath.Join(root, "inplace", "a.go"), []byte("package a\n"+test.source), 0o600)).To(Succeed())

			found, err := find(root)
			if test.fails != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.fails)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(Equal(test.want))
		})
	}
}

func TestDocument(t *testing.T) {
	g := NewWithT(t)
	got := document([]constant{
		{value: "Paused", meaning: "the update is paused"}, {value: "GracePeriod", meaning: "a | b"}, {value: "Paused", meaning: "it waits"},
	})

	g.Expect(got).To(ContainSubstring("| `GracePeriod` | a \\| b | " + report.Advice("GracePeriod")))
	g.Expect(got).To(ContainSubstring("| `Paused` | the update is paused; or: it waits | " + report.Advice("Paused")))
	g.Expect(got).To(ContainSubstring("| `ImagePullBackOff` | "))
}
