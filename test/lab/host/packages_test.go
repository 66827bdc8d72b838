// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestMissingNamesEveryPackageOnce(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	programs, packages := missing(t.Context())
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

func TestLastLines(t *testing.T) {
	NewWithT(t).Expect(lastLines("a\nb\nc\n", 2)).To(Equal("b\nc"))
}
