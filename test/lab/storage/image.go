// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// fileSystem is what is in every volume. Its size can be changed by root in a
// container, who can mount ext4, but not grow it while it is mounted.
const fileSystem = "xfs"

// sectorBytes is the unit in which the kernel tells the size of a device.
const sectorBytes = 512

// journalBytes is the size of the journal in all but the smallest volumes.
const journalBytes = 16 * mebibyte

// makeImage makes the file of a volume with an empty file system in it. What
// is not written to takes no room on disk.
func makeImage(ctx context.Context, image string, bytes int64) error {
	temporary := image + ".new"
	file, err := os.Create(temporary)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if err := errors.Join(file.Truncate(bytes), file.Close()); err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	// Unsupported is what is small: file systems below 300 MiB, and journals
	// below 64 MiB, which are written when they are made.
	args := []string{"-q", "-f", "-K", "--unsupported"}
	if bytes > 4*journalBytes {
		args = append(args, "-l", fmt.Sprintf("size=%d", journalBytes))
	}
	if err := command(ctx, "mkfs.xfs", append(args, temporary)...); err != nil {
		return err
	}
	return os.Rename(temporary, image)
}

// copyImage copies the file of a volume, and leaves out its holes.
func copyImage(ctx context.Context, from, to string) error {
	temporary := to + ".new"
	if err := command(ctx, "cp", "--sparse=always", "--reflink=auto", from, temporary); err != nil {
		return err
	}
	return os.Rename(temporary, to)
}

// command runs a program. The error holds what it printed.
func command(ctx context.Context, name string, args ...string) error {
	output, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("run %s: %w: %s", name, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// hasGrown reports whether the loop device of the image is as large as it.
func hasGrown(image string) (bool, error) {
	devices, err := loopDevices(image)
	if err != nil || len(devices) == 0 {
		return false, err
	}
	text, err := os.ReadFile(filepath.Join("/sys/block", devices[0], "size"))
	if err != nil {
		return false, fmt.Errorf("find size of device: %w", err)
	}
	sectors, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return false, fmt.Errorf("find size of device: %w", err)
	}
	file, err := os.Stat(image)
	if err != nil {
		return false, fmt.Errorf("find size of image: %w", err)
	}
	return sectors*sectorBytes >= file.Size(), nil
}

// loopDevices returns the loop devices, such as "loop3", that the image is
// attached to. A device is there as long as it is mounted anywhere, in whatever
// namespace, and no longer.
func loopDevices(image string) ([]string, error) {
	return loopDevicesOf(func(backing string) bool { return backing == image })
}

// loopDevicesOf returns the loop devices of the files that match by their path,
// which has " (deleted)" at its end if it is.
func loopDevicesOf(matches func(backing string) bool) ([]string, error) {
	files, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return nil, err
	}
	var found []string
	for _, file := range files {
		backing, err := os.ReadFile(file)
		if err == nil && matches(strings.TrimSpace(string(backing))) {
			found = append(found, filepath.Base(filepath.Dir(filepath.Dir(file))))
		}
	}
	return found, nil
}

// Release frees the devices of volumes that were being copied when all
// processes of their lab died. Other devices have gone by themselves.
func (s Store) Release() error {
	left, err := loopDevicesOf(func(backing string) bool { return strings.HasPrefix(backing, s.Dir+"/") })
	if err != nil {
		return err
	}
	for _, device := range left {
		// An error means that it is on its way, and does not need it.
		_ = thawUnmounted(device)
	}
	return nil
}
