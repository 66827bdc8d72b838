// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/test/lab/images"
)

func TestFlagsOfLoadThatGoTogether(t *testing.T) {
	for name, tc := range map[string]struct {
		from  source
		args  []string
		wrong string
	}{
		"two names of one image":    {from: source{debs: []string{"bash"}, also: []string{"b:1"}}, args: []string{"a:1", "curl"}},
		"two names of two images":   {from: source{also: []string{"b:1"}}, args: []string{"redis:alpine", "redis:latest"}, wrong: "found --also with the images [redis:alpine redis:latest]: accepted is one"},
		"a file in an image of Go":  {from: source{goPackage: "cmd", files: []string{"a:/a"}}, args: []string{"a:1"}, wrong: "found --file without --deb"},
		"padding of an archive":     {from: source{archive: "a.tar", padding: "1Mi"}, args: []string{"a:1"}, wrong: "found --padding without --go"},
		"padding of an image of Go": {from: source{goPackage: "cmd", padding: "1Mi"}, args: []string{"a:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := tc.from.check(tc.args)
			if tc.wrong == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(tc.wrong)))
		})
	}
}

func TestFilesThatAreAdded(t *testing.T) {
	g := NewWithT(t)
	here := filepath.Join(t.TempDir(), "tool.sh")
	g.Expect(os.WriteFile(here, []byte("#!/bin/sh\n"), 0o600)).To(Succeed())
	g.Expect(os.Chmod(here, 0o755)).To(Succeed()) //nolint:gosec // it is a program

	added, err := (&source{files: []string{here + ":/usr/local/bin/tool"}}).added()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(added).To(Equal([]images.File{{Path: "/usr/local/bin/tool", Mode: 0o755, Content: []byte("#!/bin/sh\n")}}))

	for _, wrong := range []string{here, here + ":bin/tool"} {
		_, err := (&source{files: []string{wrong}}).added()
		g.Expect(err).To(MatchError(ContainSubstring("accepted is HERE:THERE")))
	}
	_, err = (&source{files: []string{here + "x:/tool"}}).added()
	g.Expect(err).To(MatchError(ContainSubstring("tool.shx")))
}
