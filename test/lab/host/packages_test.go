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

func TestMissingNamesEveryPackageOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	programs, packages := missing()
	g := NewWithT(t)
	g.Expect(programs).To(ContainElements("containerd", "containerd-shim-runc-v2", "runc"))
	g.Expect(packages).To(ContainElements("conntrack", "containerd", "iptables", "runc"))
	g.Expect(packages).To(HaveLen(len(unique(packages))))
}

func unique(names []string) map[string]bool {
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
	}
	return found
}

func TestEnsurePackagesSaysWhatToInstallWithoutApt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := EnsurePackages(t.Context(), func(string) {})
	NewWithT(t).Expect(err).To(MatchError(And(ContainSubstring("containerd-shim-runc-v2"), ContainSubstring("without apt-get"))))
}

func TestIsLocked(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "lock")
	g.Expect(isLocked(path)).To(BeFalse(), "there is no such file")
	file, err := os.Create(path)
	g.Expect(err).NotTo(HaveOccurred())
	defer file.Close() //nolint:errcheck // Only locked.
	g.Expect(isLocked(path)).To(BeFalse())
	// A lock of this very process is never in its own way, so one of the
	// open file description stands in for another process.
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	g.Expect(unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &lock)).To(Succeed())
	g.Expect(isLocked(path)).To(BeTrue())
}

func TestLastLines(t *testing.T) {
	NewWithT(t).Expect(lastLines("a\nb\nc\n", 2)).To(Equal("b\nc"))
}
