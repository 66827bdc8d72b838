// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// oldest are the oldest programs that nodes run with: those of Debian 12. An installation
// from elsewhere may be older, and comes first where it is in /usr/local.
var oldest = []struct {
	program      string
	major, minor int
}{
	{"containerd", 1, 6},
	{"runc", 1, 1},
}

var versionPattern = regexp.MustCompile(`\bv?(\d+)\.(\d+)`)

// CheckVersions returns an error if a program is too old for the nodes of a lab, naming
// its file, what was found and what is accepted.
func CheckVersions(ctx context.Context) error {
	for _, need := range oldest {
		path, err := exec.LookPath(need.program)
		if err != nil {
			return fmt.Errorf("find %s: %w", need.program, err)
		}
		output, err := exec.CommandContext(ctx, path, "--version").Output()
		if err != nil {
			return fmt.Errorf("run %s --version: %w", path, err)
		}
		line, _, _ := strings.Cut(string(output), "\n")
		found := versionPattern.FindStringSubmatch(line)
		if found == nil {
			return fmt.Errorf("%s says %q, which names no version; nodes need %s %d.%d or newer", path, line, need.program, need.major, need.minor)
		}
		// The pattern lets only digits through.
		major, _ := strconv.Atoi(found[1])
		minor, _ := strconv.Atoi(found[2])
		if major < need.major || major == need.major && minor < need.minor {
			return fmt.Errorf("%s is version %d.%d (%s); nodes need %s %d.%d or newer: update it, or take it out of PATH and the lab installs Debian's",
				path, major, minor, line, need.program, need.major, need.minor)
		}
	}
	return nil
}
