// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/util/sets"
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

// fakePrograms puts stand-ins into PATH. They run in the folder that is returned, and write
// their arguments into its file log.
func fakePrograms(t *testing.T, scripts map[string]string) string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	for program, script := range scripts {
		script = "#!/bin/sh\ncd '" + folder + "'\necho " + program + " \"$@\" >>log\n" + script
		g.Expect(os.WriteFile(filepath.Join(folder, program), []byte(script), 0o755)).To(Succeed())
	}
	return folder
}

// An installation that was killed half way must not stand in the way of the next.
func TestInstallFinishesWhatWasCutOff(t *testing.T) {
	const refuse = "if [ -e interrupted ]; then\n" +
		"echo \"E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.\"; exit 100; fi\n"
	for name, test := range map[string]struct{ state, aptGet, dpkg string }{
		"dpkg was interrupted": {
			state: "interrupted", aptGet: refuse,
			dpkg: "case \"$*\" in *'--configure --pending') rm interrupted;; esac",
		},
		"a package lacks what it needs": {
			state: "broken",
			aptGet: "case \"$*\" in *--fix-broken*) rm -f broken;; esac\n" +
				"case \"$*\" in *install*) [ ! -e broken ] || { echo 'E: Unmet dependencies.'; exit 100; };; esac",
			dpkg: "[ ! -e broken ] || { echo 'dependency problems'; exit 1; }",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := fakePrograms(t, map[string]string{"apt-get": test.aptGet, "dpkg": test.dpkg})
			g.Expect(os.WriteFile(filepath.Join(folder, test.state), nil, 0o644)).To(Succeed())
			g.Expect(install(t.Context(), []string{"runc"}, func(string) {})).To(Succeed())
			g.Expect(read(g, filepath.Join(folder, "log"))).To(MatchRegexp("apt-get .* install .* runc\n$"))
		})
	}
}

func TestInstallSaysWhyDpkgCannotBeRepaired(t *testing.T) {
	fakePrograms(t, map[string]string{"apt-get": "case \"$*\" in *install*) exit 100;; esac", "dpkg": "echo 'no space left'; exit 1"})
	err := install(t.Context(), []string{"runc"}, func(string) {})
	NewWithT(t).Expect(err).To(MatchError(And(
		ContainSubstring("no space left"), ContainSubstring("install --yes --no-install-recommends runc"))))
}

// Its program may be there, without what it needs.
func TestAPackageWhoseInstallationWasCutOffIsMissing(t *testing.T) {
	g := NewWithT(t)
	fakePrograms(t, map[string]string{"runc": "", "dpkg-query": "printf 'containerd installed\\nrunc unpacked\\nmount half-installed\\n'; exit 1"})
	g.Expect(sets.List(unfinishedPackages(t.Context()))).To(Equal([]string{"mount", "runc"}))
	programs, packages := missing(t.Context())
	g.Expect(programs).To(ContainElement("runc"))
	g.Expect(packages).To(ContainElement("runc"))
}
