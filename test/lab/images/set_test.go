// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"os"
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
)

func TestBuildSetIsServedAndKept(t *testing.T) {
	requireDebian(t)
	g := NewWithT(t)
	ctx := t.Context()
	opts := SetOptions{CacheDir: t.TempDir()}
	set, err := BuildSet(ctx, opts)
	g.Expect(err).NotTo(HaveOccurred())
	url, _ := serve(t, t.TempDir())
	g.Expect(LoadAll(ctx, url, set)).To(Succeed())

	digest := func(ref string) string {
		found, err := Digest(ctx, url, ref)
		g.Expect(err).NotTo(HaveOccurred())
		return found
	}
	g.Expect(digest("nginx:alpine")).NotTo(Equal(digest("nginx:latest")))
	g.Expect(digest("nginx:stable")).To(Equal(digest("nginx:latest")))
	g.Expect(digest("nginx:1.28.0-alpine")).To(Equal(digest("nginx:alpine")))
	g.Expect(digest("nginx:1.29.0-alpine")).To(Equal(digest("nginx:latest")))
	g.Expect(digest("insitu-dev/sleeper:v1")).NotTo(Equal(digest("insitu-dev/sleeper:v2")))
	g.Expect(digest("insitu-dev/sleeper:v2")).NotTo(Equal(digest("insitu-dev/sleeper:v3")))
	g.Expect(digest("insitu-dev/sleeper:same-as-v2")).To(Equal(digest("insitu-dev/sleeper:v2")))
	g.Expect(digest(PauseRef)).NotTo(BeEmpty())

	// The second time nothing is built, and the images are the same.
	opts.Progress = func(message string) { t.Errorf("unexpected progress: %s", message) }
	again, err := BuildSet(ctx, opts)
	g.Expect(err).NotTo(HaveOccurred())
	for i := range set {
		g.Expect(again[i].Refs).To(Equal(set[i].Refs))
		g.Expect(digestOf(t, again[i].Image)).To(Equal(digestOf(t, set[i].Image)))
	}

	for _, named := range set {
		switch named.Refs[0] {
		case "library/nginx:alpine":
			_, contents := entries(t, named.Image)
			g.Expect(contents["usr/share/nginx/html/index.html"]).To(ContainSubstring("Welcome to nginx:alpine"))
			if os.Geteuid() == 0 {
				output, err := exec.Command("chroot", unpack(t, named.Image), "/usr/sbin/nginx", "-V").CombinedOutput()
				g.Expect(err).NotTo(HaveOccurred(), string(output))
				g.Expect(string(output)).To(ContainSubstring("nginx version:"))
			}
		case "library/nginx:latest":
			_, contents := entries(t, named.Image)
			g.Expect(contents["usr/share/nginx/html/index.html"]).To(ContainSubstring("Welcome to nginx:latest"))
		}
	}
}

func TestBuildSetNeedsACache(t *testing.T) {
	g := NewWithT(t)
	_, err := BuildSet(t.Context(), SetOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("CacheDir is empty")))
}
