// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// firstOther is the first file descriptor after the standard ones.
const firstOther = 3

// CloseOnExec keeps open files of this process, such as the pipes of a caller
// like make, from programs that it starts. Otherwise a lab would hold them
// open long after the caller has gone on.
func CloseOnExec() error {
	err := unix.CloseRange(firstOther, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return nil // Before Linux 5.11 there is no cheap way.
	}
	if err != nil {
		return fmt.Errorf("keep open files from the lab: %w", err)
	}
	return nil
}

// CanLowerOOMScore reports whether this process may protect others from the
// OOM killer. Root in a container often may not.
func CanLowerOOMScore() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
