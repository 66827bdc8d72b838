// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package scripts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// run runs a command with hack/env.sh sourced, with more variables, and returns what it
// printed.
func run(t *testing.T, script string, variables ...string) (output string, err error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "bash", "-c", "source hack/env.sh; "+script)
	command.Dir = filepath.Join("..", "..")
	command.Env = append(os.Environ(), "INSITU_CHECKED=")
	command.Env = append(command.Env, variables...)
	raw, err := command.CombinedOutput()
	return strings.TrimSpace(string(raw)), err
}

// without returns a folder of programs with those of the system, but no Go, and more.
func without(t *testing.T, goSays string) string {
	t.Helper()
	g := NewWithT(t)
	folder := t.TempDir()
	for _, name := range []string{"bash", "sed", "mktemp", "chmod", "rm", "df", "awk", "dirname"} {
		path, err := exec.LookPath(name)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(os.Symlink(path, filepath.Join(folder, name))).To(Succeed())
	}
	if goSays != "" {
		script := "#!/bin/bash\n[[ $1 == version ]] && echo go version go1.19.8 && exit\necho '" + goSays + "' >&2\nexit 1\n"
		g.Expect(os.WriteFile(filepath.Join(folder, "go"), []byte(script), 0o755)).To(Succeed())
	}
	return folder
}

func TestWhatAUserHasSetForOtherWorkIsSetAside(t *testing.T) {
	other := t.TempDir()
	workspace := filepath.Join(other, "go.work")
	NewWithT(t).Expect(os.WriteFile(workspace, []byte("go 1.26\n"), 0o600)).To(Succeed())
	NewWithT(t).Expect(os.Mkdir(filepath.Join(other, "hack"), 0o755)).To(Succeed())
	for name, test := range map[string]struct {
		variable, script, want string
	}{
		"a vendor folder":            {"GOFLAGS=-mod=vendor -trimpath", "go env GOFLAGS", "-trimpath -mod=readonly -buildvcs=false"},
		"flags that change go.mod":   {"GOFLAGS=-mod=mod -modfile=/x.mod", "go env GOFLAGS", "-mod=readonly -buildvcs=false"},
		"a workspace":                {"GOWORK=" + workspace, "go list -m", "github.com/insitu-dev/insitu"},
		"folders that cd looks in":   {"CDPATH=" + other, "hack/modules | head -1", "."},
		"a language":                 {"LC_ALL=", "echo $LC_ALL", "C.UTF-8"},
		"a cluster":                  {"KUBECONFIG=/x", "forget_clusters; echo ${KUBECONFIG-none}", "none"},
		"a cluster of envtest":       {"USE_EXISTING_CLUSTER=true", "forget_clusters; echo ${USE_EXISTING_CLUSTER-none}", "none"},
		"Helm's context":             {"HELM_KUBECONTEXT=x", "forget_clusters; echo ${HELM_KUBECONTEXT-none}", "none"},
		"kubectl's preferences":      {"KUBERC=/x", "forget_clusters; echo $KUBERC", "off"},
		"what is not proxied":        {"NO_PROXY=example.com", "forget_clusters; echo $no_proxy", "example.com,localhost,127.0.0.1,198.18.0.0/15"},
		"what is not, in small type": {"no_proxy=example.com", "NO_PROXY=; forget_clusters; echo $NO_PROXY", "example.com,localhost,127.0.0.1,198.18.0.0/15"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := run(t, test.script, test.variable)
			g := NewWithT(t)
			g.Expect(err).NotTo(HaveOccurred(), output)
			g.Expect(output).To(Equal(test.want))
		})
	}
}

func TestFilesThatAreMadeCanBeReadByContainers(t *testing.T) {
	g := NewWithT(t)
	command := exec.CommandContext(t.Context(), "bash", "-c", "umask 077; source hack/env.sh; umask")
	command.Dir = filepath.Join("..", "..")
	output, err := command.Output()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(output)).To(Equal("0022\n"))
}

func TestAMachineThatCannotDoItIsToldWhatIsMissing(t *testing.T) {
	old := "go: errors parsing go.mod: invalid go version"
	for name, test := range map[string]struct {
		variable, want string
	}{
		"no Go":                   {"PATH=" + without(t, ""), "there is no go in PATH"},
		"an old Go":               {"PATH=" + without(t, old), "go1.19.8. It says: " + old},
		"no home":                 {"HOME=", "HOME is not set"},
		"no temporary files":      {"TMPDIR=/does/not/exist", "name another one in TMPDIR"},
		"no temporary files (Go)": {"GOTMPDIR=/does/not/exist", "No file can be made in /does/not/exist"},
	} {
		t.Run(name, func(t *testing.T) {
			output, err := run(t, "echo went on", test.variable)
			g := NewWithT(t)
			g.Expect(err).To(HaveOccurred())
			g.Expect(output).To(And(HavePrefix("Error: "), ContainSubstring(test.want), Not(ContainSubstring("went on"))))
		})
	}
}
