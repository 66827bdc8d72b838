// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
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
	"k8s.io/apimachinery/pkg/util/sets"
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

// missing returns the tools that are not installed, as program (package), and those whose
// installation was cut off: such a program is there, but may lack what it needs.
func missing(ctx context.Context) (programs, packages []string) {
	unfinished := unfinishedPackages(ctx)
	for _, tool := range tools {
		if _, err := exec.LookPath(tool.program); err != nil || unfinished.Has(tool.debianPackage) {
			programs = append(programs, tool.program)
			packages = append(packages, tool.debianPackage)
		}
	}
	slices.Sort(packages)
	return programs, slices.Compact(packages)
}

// unfinishedPackages returns those packages of the tools that dpkg has begun to install, but
// not finished. Without dpkg there are none.
func unfinishedPackages(ctx context.Context) sets.Set[string] {
	args := []string{"--show", "--showformat", "${Package} ${db:Status-Status}\n"}
	for _, tool := range tools {
		args = append(args, tool.debianPackage)
	}
	// It fails if it does not know one of them, and prints the others.
	output, _ := exec.CommandContext(ctx, "dpkg-query", args...).Output()
	unfinished := sets.New[string]()
	for line := range strings.Lines(string(output)) {
		name, state, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(state, "half-") || state == "unpacked" {
			unfinished.Insert(name)
		}
	}
	return unfinished
}

// EnsurePackages installs the Debian packages of the tools that are missing,
// telling through say what it does. No service of theirs is started.
func EnsurePackages(ctx context.Context, say func(string)) error {
	programs, packages := missing(ctx)
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
	allow, err := servicePolicy(policyFile).forbid()
	if err != nil {
		return err
	}
	defer allow()
	if err := install(ctx, packages, say); err != nil {
		return err
	}
	if programs, _ := missing(ctx); len(programs) > 0 {
		return fmt.Errorf("%s are still missing after installing %s", strings.Join(programs, ", "), strings.Join(packages, " "))
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
