// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/insitu-dev/insitu/hack/release/pack"
)

const chartDir = "charts/insitu"

// chart returns the chart as a package that names the image by digest. What
// git ignores, such as the files of editors, is left out.
func (s *source) chart(ctx context.Context, digest string) ([]byte, error) {
	listed, err := s.run(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", chartDir)
	if err != nil {
		return nil, err
	}
	var files []pack.File
	for name := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(s.root, name))
		if err != nil {
			return nil, fmt.Errorf("pack chart: %w", err)
		}
		if name == chartDir+"/Chart.yaml" {
			text, err := pinned(string(content), s.repository+"@"+digest)
			if err != nil {
				return nil, err
			}
			content = []byte(text)
		}
		files = append(files, pack.File{Name: strings.TrimPrefix(name, "charts/"), Content: content})
	}

	return pack.TarGz(files, s.time)
}

// checkChart has Helm read and render the package.
func (s *source) checkChart(ctx context.Context, path, digest string) error {
	shown, err := s.run(ctx, "hack/tool", "helm", "show", "chart", path)
	if err != nil {
		return fmt.Errorf("check chart: %w", err)
	}
	if want := "\nversion: " + s.version + "\n"; !strings.Contains("\n"+shown, want) {
		return fmt.Errorf("check chart: helm shows another version than %s:\n%s", s.version, shown)
	}
	rendered, err := s.run(ctx, "hack/tool", "helm", "template", "insitu", path, "--namespace", "insitu-system")
	if err != nil {
		return fmt.Errorf("check chart: %w", err)
	}

	return s.checkImages("the chart", rendered, digest)
}

// install returns config/default as one file, with the image of the release.
func (s *source) install(ctx context.Context, digest string) (string, error) {
	overlay, err := os.MkdirTemp("", "insitu-install-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(overlay) }()
	// kustomize takes a folder beside its own by a relative path only.
	here, err := filepath.EvalSymlinks(overlay)
	if err != nil {
		return "", err
	}
	base, err := filepath.Rel(here, filepath.Join(s.root, "config/default"))
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("resources: [%q]\nimages: [{name: %s, newName: %[2]s, newTag: \"\", digest: %q}]\n", base, s.repository, digest)
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		return "", err
	}
	rendered, err := s.run(ctx, "hack/tool", "kustomize", "build", here)
	if err != nil {
		return "", fmt.Errorf("render config/default: %w", err)
	}

	return rendered, s.checkImages("install.yaml", rendered, digest)
}

// checkImages makes sure that every container has the image that was made.
func (s *source) checkImages(what, rendered, digest string) error {
	want, found := s.repository+"@"+digest, 0
	for line := range strings.Lines(rendered) {
		image, ok := strings.CutPrefix(strings.TrimPrefix(strings.TrimSpace(line), "- "), "image: ")
		if !ok {
			continue
		}
		if image = strings.Trim(image, `"`); image != want {
			return fmt.Errorf("%s has the image %s, want %s", what, image, want)
		}
		found++
	}
	if found == 0 {
		return fmt.Errorf("%s has no image, want %s", what, want)
	}

	return nil
}
