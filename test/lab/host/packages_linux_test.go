// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
)

func TestIsLocked(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "lock")
	g.Expect(isLocked(path)).To(BeFalse(), "there is no such file")
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close()
	g.Expect(isLocked(path)).To(BeFalse())
	// A lock of this very process is never in its own way, so one of the
	// open file description stands in for another process.
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	g.Expect(unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)).To(Succeed())
	g.Expect(isLocked(path)).To(BeTrue())
}
