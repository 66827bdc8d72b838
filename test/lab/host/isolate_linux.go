// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// LabAttributes start the first process of a lab: in a network, PID and mount
// namespace of its own, and detached from the terminal, so that Ctrl-C
// reaches only the command that started it.
func LabAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		Setsid:     true,
	}
}

// NodeAttributes start the first process of a node: in a PID and mount
// namespace of its own inside the lab's.
func NodeAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
}

// Mounts is what the first process of a mount namespace sees differently from
// the outside.
type Mounts struct {
	// Keep are folders below /run that stay as they are outside. The rest of
	// /run is new and empty: containerd, CNI plugins and iptables keep
	// sockets, network namespaces and locks there under fixed names.
	Keep []string
	// Replace maps fixed paths that programs write to onto folders of the
	// lab. Missing folders are made on both sides.
	Replace map[string]string
	// Values maps files of /proc/sys onto what they read as. Programs that
	// want to set the machine to these values find that done, and leave it.
	Values map[string]string
}

// Apply puts the calling process, the first of new PID and mount namespaces,
// into its place. Scratch is a folder for the files behind Mounts.Values.
func (m Mounts) Apply(scratch string) error {
	// Nothing that is mounted here may be seen outside; inside, mounts must
	// propagate, as volumes with mountPropagation need.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("detach mounts: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	if err := m.renewRun(); err != nil {
		return err
	}
	for path, folder := range m.Replace {
		if err := bindFolder(folder, path); err != nil {
			return err
		}
	}
	return m.bindValues(scratch)
}

// renewRun puts an empty file system over /run and the kept folders back.
func (m Mounts) renewRun() error {
	kept := make([]*os.File, 0, len(m.Keep))
	defer func() {
		for _, folder := range kept {
			_ = folder.Close() // It was only held to be mounted.
		}
	}()
	for _, path := range m.Keep {
		folder, err := os.Open(path)
		if err != nil {
			return fmt.Errorf("keep folder: %w", err)
		}
		kept = append(kept, folder)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount /run: %w", err)
	}
	for i, path := range m.Keep {
		if err := bindFolder(fmt.Sprintf("/proc/self/fd/%d", kept[i].Fd()), path); err != nil {
			return err
		}
	}
	return nil
}

func bindFolder(folder, path string) error {
	for _, each := range []string{folder, path} {
		if err := os.MkdirAll(each, 0o755); err != nil {
			return fmt.Errorf("make folder for mount: %w", err)
		}
	}
	if err := unix.Mount(folder, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", folder, path, err)
	}
	return nil
}

func (m Mounts) bindValues(scratch string) error {
	for path, value := range m.Values {
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue // A kernel without it; the program has to cope.
		}
		file := filepath.Join(scratch, filepath.Base(path))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("write value of %s: %w", path, err)
		}
		if err := unix.Mount(file, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount value of %s: %w", path, err)
		}
	}
	return nil
}

// MountsBelow returns the mount points below the folder that this process
// sees, deepest first.
func MountsBelow(folder string) ([]string, error) {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, fmt.Errorf("list mounts: %w", err)
	}
	defer file.Close()
	var found []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) > 4 && strings.HasPrefix(fields[4], filepath.Clean(folder)+"/") {
			found = append(found, fields[4])
		}
	}
	slices.Sort(found)
	slices.Reverse(found)
	return found, lines.Err()
}
