// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// aptCache resolves and downloads Debian packages as for an empty machine:
// what is installed on this one does not matter, and stays as it is.
type aptCache struct {
	dir string
}

// fetch returns the paths of the archives of packages and of their
// dependencies, sorted. What was downloaded before is not downloaded again.
func (a aptCache) fetch(ctx context.Context, packages []string) ([]string, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("find apt-get, which comes with Debian and Ubuntu: %w", err)
	}
	for _, folder := range []string{"partial", "none/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, folder), 0o755); err != nil {
			return nil, err
		}
	}
	if err := a.ensureLists(ctx); err != nil {
		return nil, err
	}
	names, err := a.resolve(ctx, packages)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(a.dir, name)
	}
	if slices.ContainsFunc(paths, isMissing) {
		if err := a.download(ctx, packages); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// resolve returns the file names of the archives that an installation would
// need, in order. apt-get names only those it has yet to download, so it is
// shown an empty folder.
func (a aptCache) resolve(ctx context.Context, packages []string) ([]string, error) {
	listing, err := install(ctx, filepath.Join(a.dir, "none"), "--print-uris", packages)
	if err != nil {
		return nil, fmt.Errorf("resolve %s: %w", strings.Join(packages, ", "), err)
	}
	var names []string
	for line := range strings.Lines(listing) {
		// 'http://.../nginx_1.22.1-9_amd64.deb' nginx_1.22.1-9_amd64.deb 531468 SHA256:...
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(line, "'") {
			names = append(names, fields[1])
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("resolve %s: apt-get named no archive", strings.Join(packages, ", "))
	}
	slices.Sort(names)
	return names, nil
}

// download gets the archives. The lists of a machine that has not been updated
// for long name versions that are gone, so a failure is tried again with fresh
// lists.
func (a aptCache) download(ctx context.Context, packages []string) error {
	_, first := install(ctx, a.dir, "--download-only", packages)
	if first == nil {
		return nil
	}
	if err := update(ctx); err != nil {
		return errors.Join(first, err)
	}
	_, err := install(ctx, a.dir, "--download-only", packages)
	return err
}

// ensureLists makes apt-get read its sources if it never did.
func (a aptCache) ensureLists(ctx context.Context) error {
	targets, err := run(ctx, "apt-get", "indextargets", "--format", "$(FILENAME)", "Created-By: Packages")
	if err != nil {
		return err
	}
	known := slices.ContainsFunc(strings.Fields(targets), func(path string) bool { return !isMissing(path) })
	if known {
		return nil
	}
	return update(ctx)
}

// install runs apt-get in a mode that does not install, with archives as the
// folder of downloaded packages.
func install(ctx context.Context, archives, mode string, packages []string) (string, error) {
	args := []string{
		"-o", "Dir::State::status=/dev/null", // nothing is installed
		"-o", "Dir::Cache::archives=" + archives,
		"-o", "Dir::Cache::pkgcache=", "-o", "Dir::Cache::srcpkgcache=", // they describe this machine
		"-o", "Debug::NoLocking=1", // not the machine's, and other labs may read it
		"-o", "APT::Sandbox::User=root", // _apt cannot write everywhere
		"-o", "APT::Install-Recommends=false",
		"-qq", "--yes", mode, "install", "--",
	}
	return run(ctx, "apt-get", append(args, packages...)...)
}

func update(ctx context.Context) error {
	_, err := run(ctx, "apt-get", "-qq", "update")
	return err
}

// run returns what a program printed. An error holds what it complained about.
func run(ctx context.Context, program string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("run %s: %w", program, withOutput(err, stderr.String()))
	}
	return stdout.String(), nil
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return err != nil
}
