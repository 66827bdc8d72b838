// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Tools are the programs that real nodes need, with the Debian package of each.
var tools = []struct{ program, debianPackage string }{
	{"containerd", "containerd"},
	{"containerd-shim-runc-v2", "containerd"},
	{"runc", "runc"},
	{CNIFolder + "/ptp", "containernetworking-plugins"},
	{CNIFolder + "/host-local", "containernetworking-plugins"},
	{CNIFolder + "/portmap", "containernetworking-plugins"},
	{CNIFolder + "/loopback", "containernetworking-plugins"},
	{"iptables", "iptables"},
	{"iptables-restore", "iptables"},
	{"conntrack", "conntrack"},
	{"mount", "mount"},
	{"mkfs.xfs", "xfsprogs"},
	{"xfs_growfs", "xfsprogs"},
	{"modprobe", "kmod"},
}

// CNIFolder is where Debian keeps the plugins of the container network.
const CNIFolder = "/usr/lib/cni"

// dpkgLock is held by whoever installs packages.
const dpkgLock = "/var/lib/dpkg/lock-frontend"

// policyFile tells Debian's package scripts which services they may start.
const policyFile = "/usr/sbin/policy-rc.d"

// WhyNoNodes returns why real nodes cannot run here, nil if they can.
func WhyNoNodes() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("real nodes need Linux, this is %s", runtime.GOOS)
	case os.Geteuid() != 0:
		return fmt.Errorf("real nodes need root, this is user %d", os.Geteuid())
	}
	return nil
}

// missing returns the tools that are not installed, as program (package).
func missing() (programs, packages []string) {
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.program); err != nil {
			programs = append(programs, tool.program)
			packages = append(packages, tool.debianPackage)
		}
	}
	slices.Sort(packages)
	return programs, slices.Compact(packages)
}

// EnsurePackages installs the Debian packages of the tools that are missing,
// telling through say what it does. No service of theirs is started.
func EnsurePackages(ctx context.Context, say func(string)) error {
	programs, packages := missing()
	if len(programs) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("real nodes need %s, which are not installed, and without apt-get the lab cannot install them: "+
			"install what Debian has as %s", strings.Join(programs, ", "), strings.Join(packages, " "))
	}
	if err := awaitLock(ctx, say); err != nil {
		return err
	}
	allow, err := forbidServices()
	if err != nil {
		return err
	}
	defer allow()
	say("Installing " + strings.Join(packages, " "))
	if err := aptInstall(ctx, packages); err != nil {
		say("Updating package lists, the first attempt failed")
		if err := apt(ctx, "update"); err != nil {
			return err
		}
		if err := aptInstall(ctx, packages); err != nil {
			return err
		}
	}
	if programs, _ := missing(); len(programs) > 0 {
		return fmt.Errorf("%s are still missing after installing %s", strings.Join(programs, ", "), strings.Join(packages, " "))
	}
	return nil
}

func aptInstall(ctx context.Context, packages []string) error {
	return apt(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, packages...)...)
}

func apt(ctx context.Context, args ...string) error {
	command := exec.CommandContext(ctx, "apt-get", append([]string{"-qq", "-o", "DPkg::Lock::Timeout=300"}, args...)...)
	command.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	// Ctrl-C must not stop dpkg half way: it gets a process group of its
	// own, and an end in order.
	detach(command)
	command.Cancel = func() error { return command.Process.Signal(unix.SIGTERM) }
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	if err := command.Run(); err != nil {
		return fmt.Errorf("run apt-get %s: %w: %s", args[0], err, lastLines(output.String(), 5))
	}
	return nil
}

// awaitLock waits until no one else installs packages.
func awaitLock(ctx context.Context, say func(string)) error {
	for told := false; ; told = true {
		busy, err := isLocked(dpkgLock)
		if err != nil || !busy {
			return err
		}
		if !told {
			say("Waiting for another package manager, which holds " + dpkgLock)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another package manager: %w", ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// isLocked reports whether a process holds a POSIX lock on the file.
func isLocked(path string) (bool, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at lock: %w", err)
	}
	defer file.Close()
	lock := unix.Flock_t{Type: unix.F_RDLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil {
		return false, fmt.Errorf("look at lock %s: %w", path, err)
	}
	return lock.Type != unix.F_UNLCK, nil
}

// forbidServices makes package scripts start no service, such as Debian's own
// containerd, until allow is called. A policy that is there already stays.
func forbidServices() (allow func(), err error) {
	file, err := os.OpenFile(policyFile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if errors.Is(err, fs.ErrExist) {
		return func() {}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("forbid services: %w", err)
	}
	_, err = file.WriteString("#!/bin/sh\n# Made by the lab while it installs packages.\nexit 101\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("forbid services: %w", err)
	}
	return func() { _ = os.Remove(policyFile) }, nil
}

// LoadModules loads kernel modules that may be needed. Modules that are built
// in, or missing, are no error: who needs them says so.
func LoadModules(ctx context.Context, names ...string) {
	for _, name := range names {
		_ = exec.CommandContext(ctx, "modprobe", "--quiet", name).Run()
	}
}

// OnOverlay reports whether the folder lies on an overlay file system, as in a
// container, on which no further overlay can be mounted.
func OnOverlay(folder string) bool {
	return isOverlay(filepath.Clean(folder))
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
