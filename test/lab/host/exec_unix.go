// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package host

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// overlayMagic is OVERLAYFS_SUPER_MAGIC, see statfs(2).
const overlayMagic = 0x794c7630

// detach gives the command a process group of its own.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

// isOverlay reports whether the folder is known to lie on an overlay file
// system.
func isOverlay(folder string) bool {
	var stat unix.Statfs_t
	if err := unix.Statfs(folder, &stat); err != nil {
		return false
	}
	return stat.Type == overlayMagic
}
