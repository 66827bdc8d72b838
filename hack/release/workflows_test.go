// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// What runs where there are credentials is pinned by commit, and may do no more than it says.
func TestWorkflowsArePinned(t *testing.T) {
	g := NewWithT(t)
	paths, err := filepath.Glob("../../.github/workflows/*.yaml")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(paths)).To(BeNumerically(">=", 3))
	for _, path := range paths {
		var workflow struct {
			Permissions *map[string]string `json:"permissions"`
			Jobs        map[string]struct {
				Permissions map[string]string `json:"permissions"`
				Steps       []struct {
					Uses string `json:"uses"`
					Run  string `json:"run"`
				} `json:"steps"`
			} `json:"jobs"`
		}
		g.Expect(decode(path, &workflow)).To(Succeed())
		g.Expect(workflow.Permissions).NotTo(BeNil(), path)
		for scope, access := range *workflow.Permissions {
			g.Expect(scope+": "+access).To(Equal("contents: read"), path)
		}
		for name, job := range workflow.Jobs {
			for scope, access := range job.Permissions {
				if filepath.Base(path) != "release.yaml" || name != "publish" {
					g.Expect(access).To(Equal("read"), "%s %s %s", path, name, scope)
				}
			}
			for _, step := range job.Steps {
				// What GitHub puts into the text of a script, a shell reads as commands.
				g.Expect(step.Run).NotTo(ContainSubstring("${{"), "%s %s", path, name)
				g.Expect(step.Uses).To(Or(BeEmpty(), MatchRegexp(`^[a-z-]+/[a-z-]+@[0-9a-f]{40}$`)), "%s %s", path, name)
			}
		}
	}
}
