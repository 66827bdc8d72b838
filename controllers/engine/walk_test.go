// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
)

// CONTRIBUTING.md leads a reader from an event to a patch.
func TestTheWalkThroughTheCodeIsTrue(t *testing.T) {
	g := NewWithT(t)
	const root = "../.."
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	g.Expect(err).NotTo(HaveOccurred())
	stops := regexp.MustCompile(`(?m)^\| \d+ \| \[(\S+\.go)\]\((\S+)\) \| `+"`"+`(\w+)`+"`"+` \|`).FindAllStringSubmatch(string(text), -1)
	g.Expect(stops).To(HaveLen(10))
	for _, stop := range stops {
		g.Expect(stop[1]).To(Equal(stop[2]))
		source, err := os.ReadFile(filepath.Join(root, stop[1]))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(string(source)).To(MatchRegexp(`(?m)^func (\([^)]*\) )?`+stop[3]+`\(`), stop[1])
	}
}
