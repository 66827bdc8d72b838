// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package host

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func TestVersionsOfProgramsThatAreThere(t *testing.T) {
	const debian = "containerd github.com/containerd/containerd 1.6.20~ds1 1.6.20~ds1-1+deb12u3"
	for name, test := range map[string]struct {
		containerd, runc string
		want             string
	}{
		"Debian 12":     {containerd: debian, runc: "runc version 1.1.5+ds1"},
		"Docker's":      {containerd: "containerd containerd.io 1.7.27 05044ec0a9a75232cad458027ca83437aae3f4da", runc: "runc version 1.2.5"},
		"containerd 2":  {containerd: "containerd github.com/containerd/containerd/v2 v2.1.0 061792f0ecf3", runc: "runc version 1.3.0"},
		"old":           {containerd: "containerd github.com/containerd/containerd v1.4.13 9cc61520f4cd", runc: "runc version 1.1.5", want: "containerd 1.6 or newer"},
		"old runc":      {containerd: debian, runc: "runc version 1.0.0-rc93", want: "runc 1.1 or newer"},
		"not a version": {containerd: "a wrapper", runc: "runc version 1.1.5", want: "names no version"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			folder := t.TempDir()
			t.Setenv("PATH", folder)
			for program, says := range map[string]string{"containerd": test.containerd, "runc": test.runc} {
				script := "#!/bin/sh\necho '" + says + "'\necho 'spec: 1.0'\n"
				g.Expect(os.WriteFile(filepath.Join(folder, program), []byte(script), 0o755)).To(Succeed())
			}
			err := CheckVersions(t.Context())
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
			} else {
				g.Expect(err).To(MatchError(And(ContainSubstring(test.want), ContainSubstring(folder))))
			}
		})
	}
}
