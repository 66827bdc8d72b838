// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// source is what a release is made from.
type source struct {
	// root is the folder of the repository.
	root string
	// version is without a "v".
	version, commit string
	// time is that of everything that has one in a release.
	time time.Time
	// repository is that of the image, as the chart names it.
	repository string
	// url, description and home are those of the chart.
	url, description string
}

type sourceOptions struct {
	// version is what the release is to be, empty for the chart's.
	version string
	// epoch is SOURCE_DATE_EPOCH, empty for the time of the commit.
	epoch      string
	allowDirty bool
}

// readSource looks at the checkout. All versions that it names must agree.
func readSource(ctx context.Context, root string, options sourceOptions) (source, error) {
	found := source{root: root}
	if err := found.readChart(options.version); err != nil {
		return source{}, err
	}
	if err := found.readCommit(ctx, options.allowDirty); err != nil {
		return source{}, err
	}
	if options.epoch != "" {
		seconds, err := strconv.ParseInt(options.epoch, 10, 64)
		if err != nil || seconds <= 0 {
			return source{}, fmt.Errorf("read SOURCE_DATE_EPOCH: found %q, accepted are seconds since 1970", options.epoch)
		}
		found.time = time.Unix(seconds, 0).UTC()
	}

	return found, nil
}

func (s *source) readChart(version string) error {
	var chart struct {
		Version     string   `json:"version"`
		AppVersion  string   `json:"appVersion"`
		Home        string   `json:"home"`
		Description string   `json:"description"`
		Sources     []string `json:"sources"`
	}
	if err := decode(filepath.Join(s.root, chartDir, "Chart.yaml"), &chart); err != nil {
		return err
	}
	var values struct {
		Image struct {
			Repository string `json:"repository"`
		} `json:"image"`
	}
	if err := decode(filepath.Join(s.root, chartDir, "values.yaml"), &values); err != nil {
		return err
	}
	if chart.Version == "" || chart.AppVersion != chart.Version {
		return fmt.Errorf("charts/insitu/Chart.yaml: version is %q and appVersion is %q, accepted is the same for both", chart.Version, chart.AppVersion)
	}
	if version = strings.TrimPrefix(version, "v"); version != "" && version != chart.Version {
		return fmt.Errorf("VERSION is %q, but version in charts/insitu/Chart.yaml is %q: a release has the version of its chart", version, chart.Version)
	}
	if chart.Home == "" || chart.Description == "" || values.Image.Repository == "" {
		return fmt.Errorf("charts/insitu: home and description of Chart.yaml and image.repository of values.yaml must not be empty")
	}
	s.version, s.url, s.description, s.repository = chart.Version, chart.Home, chart.Description, values.Image.Repository

	return nil
}

func (s *source) readCommit(ctx context.Context, allowDirty bool) error {
	line, err := s.run(ctx, "git", "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(line), " ")
	epoch, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read time of commit %s: %w", commit, err)
	}
	s.commit, s.time = commit, time.Unix(epoch, 0).UTC()
	changed, err := s.run(ctx, "git", "status", "--porcelain")
	if err != nil || changed == "" {
		return err
	}
	if !allowDirty {
		return fmt.Errorf("the checkout differs from its commit; commit or remove what changed, or try it with --allow-dirty:\n%s", strings.TrimRight(changed, "\n"))
	}
	s.commit += "-dirty"

	return nil
}

// run returns what a program prints that runs in the repository's folder.
func (s *source) run(ctx context.Context, program string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = s.root
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("run %s %s: %w: %s", program, strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}

	return string(output), nil
}

func decode(path string, into any) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(content, into); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}

	return nil
}
