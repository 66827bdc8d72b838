// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gotool

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

// What `go env -w` has written changes where code comes from, and not what is compiled.
func TestEnvironment(t *testing.T) {
	g := NewWithT(t)
	file := filepath.Join(t.TempDir(), "env")
	g.Expect(os.WriteFile(file, []byte("GOFLAGS=-tags=netgo\nGOEXPERIMENT=nogreenteagc\nGOAMD64=v3\nGOFIPS140=latest\nCGO_ENABLED=1\n"+
		"GOVCS=*:git\nGOINSECURE=example.com/*\n"), 0o600)).To(Succeed())
	t.Setenv("GOENV", file)
	for _, name := range []string{"GOFLAGS", "GOEXPERIMENT", "GOAMD64", "GOVCS", "GOINSECURE", "GOFIPS140", "CGO_ENABLED"} {
		t.Setenv(name, "")
	}
	setting := func(name string, environment ...string) string {
		command := exec.CommandContext(t.Context(), "go", "env", name)
		command.Env = append(os.Environ(), environment...)
		output, err := command.Output()
		g.Expect(err).NotTo(HaveOccurred())

		return string(output)
	}
	g.Expect(setting("GOFLAGS")).To(Equal("-tags=netgo\n"), "it counts without an environment of ours")
	cache := setting("GOMODCACHE")

	found, err := Environment(t.Context(), "windows", "amd64")

	g.Expect(err).NotTo(HaveOccurred())
	var variables []string
	for name, value := range found {
		variables = append(variables, name+"="+value)
	}
	for name, want := range map[string]string{
		"GOFLAGS": "\n", "GOEXPERIMENT": "\n", "GOAMD64": "v1\n", "GOFIPS140": "off\n", "CGO_ENABLED": "0\n", "GOOS": "windows\n",
		"GOVCS": "*:git\n", "GOINSECURE": "example.com/*\n", "GOMODCACHE": cache,
	} {
		g.Expect(setting(name, variables...)).To(Equal(want), name)
	}
}
