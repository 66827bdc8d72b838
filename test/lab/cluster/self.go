// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// selfPath returns the program file of this process. On Linux it stays valid
// when the file is removed while a lab runs, as the cache of built labs does
// to old ones.
func selfPath() string {
	if runtime.GOOS == "linux" {
		return "/proc/self/exe"
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// containerdPath returns the program file of containerd. It is known to be
// there, see host.EnsurePackages; if it is gone since, the supervisor reports
// that it cannot be started.
func containerdPath() string {
	path, err := exec.LookPath(containerd)
	if err != nil {
		return "/usr/bin/containerd"
	}
	return path
}

// environment returns what the programs of a lab get of a caller's environment: where to
// find things, and how much memory Go may use to save time. The rest is for other work: an HTTP proxy that cannot reach pods, a TMPDIR that ends with a session,
// another KUBECONFIG, settings of tests.
func environment(all []string) []string {
	var kept []string
	for _, pair := range all {
		switch name, _, _ := strings.Cut(pair, "="); name {
		case "PATH", "HOME", "TZ", "LC_ALL", "GOGC", "GOMEMLIMIT", "INSITU_LAB", "INSITU_LAB_CACHE":
			kept = append(kept, pair)
		}
	}
	return kept
}

// CompletePath adds the folders of system programs to PATH, which users that
// became root often lack. All that the process starts inherits it.
func CompletePath() error {
	folders := strings.Split(os.Getenv("PATH"), ":")
	for _, needed := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		found := false
		for _, folder := range folders {
			found = found || folder == needed
		}
		if !found {
			folders = append(folders, needed)
		}
	}
	return os.Setenv("PATH", strings.Join(folders, ":"))
}
