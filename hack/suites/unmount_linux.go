// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// unmountBelow unmounts what a test that was killed has mounted below a folder, so that
// nothing else than the folder is removed.
func unmountBelow(folder string) error {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return fmt.Errorf("list mounts: %w", err)
	}
	for _, line := range slices.Backward(strings.Split(string(mounts), "\n")) {
		fields := strings.Fields(line)
		if len(fields) < 2 || !strings.HasPrefix(fields[1], folder+"/") {
			continue
		}
		// A name with a space is written otherwise there, and not found: that is an error.
		if err := unix.Unmount(fields[1], 0); err != nil {
			return fmt.Errorf("unmount %s: %w", fields[1], err)
		}
	}

	return nil
}
