// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// install installs packages, after what an installation that was cut off left undone.
func install(ctx context.Context, packages []string, say func(string)) error {
	repairErr := configurePending(ctx)
	say("Installing " + strings.Join(packages, " "))
	if aptInstall(ctx, packages) == nil {
		return nil
	}
	say("Updating package lists, the first attempt failed")
	if err := apt(ctx, "update"); err != nil {
		return errors.Join(repairErr, err)
	}
	// Where a package was unpacked and those that it needs were not, apt-get installs
	// nothing else before they are.
	if repairErr != nil {
		repairErr = errors.Join(repairErr, apt(ctx, "install", "--yes", "--fix-broken"))
	}
	if err := aptInstall(ctx, packages); err != nil {
		return errors.Join(repairErr, err)
	}
	return nil
}

func aptInstall(ctx context.Context, packages []string) error {
	return apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

func apt(ctx context.Context, args ...string) error {
	return runInstaller(ctx, "apt-get", append([]string{"-qq", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
}

// configurePending finishes what a dpkg did not that was cut off half way. Until then
// apt-get refuses to install anything. Files that the user has changed stay.
func configurePending(ctx context.Context) error {
	return runInstaller(ctx, "dpkg", "--force-confdef", "--force-confold", "--configure", "--pending")
}

func runInstaller(ctx context.Context, program string, args ...string) error {
	command := exec.CommandContext(ctx, program, args...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// Ctrl-C must not stop dpkg half way: it gets a process group of its
	// own, and an end in order.
	detach(command)
	command.Cancel = func() error { return command.Process.Signal(unix.SIGTERM) }
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("run %s %s: %w: %s", program, strings.Join(args, " "), err, lastLines(output.String(), 5))
	}
	return nil
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
