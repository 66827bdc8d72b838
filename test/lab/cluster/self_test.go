// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// An HTTP proxy of the machine would get what the API server has for webhooks, and what
// the kubelet has for the registry.
func TestProgramsOfALabInheritNothingOfOtherWork(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	for _, name := range []string{"HTTPS_PROXY", "http_proxy", "KUBECONFIG", "TMPDIR", "KUBE_CACHE_MUTATION_DETECTOR", "NOTIFY_SOCKET"} {
		t.Setenv(name, "/elsewhere")
	}
	t.Setenv("GOGC", "400")
	lab := &Lab{Spec: Spec{Nodes: 1}, Dir: dir}
	env := lab.supervisorCommand(nil).Env
	g.Expect(env).To(ContainElements("PATH="+os.Getenv("PATH"), "GOGC=400"))
	g.Expect(strings.Join(env, " ")).NotTo(ContainSubstring("/elsewhere"))
}

func TestALabIsFoundWithAnotherTMPDIR(t *testing.T) {
	lab := &Lab{Dir: "/a/lab", Ports: &Ports{}}
	t.Setenv("TMPDIR", "/elsewhere")
	one := lab.ControlSocket()
	t.Setenv("TMPDIR", "/"+strings.Repeat("long/", 20))
	g := NewWithT(t)
	g.Expect(lab.ControlSocket()).To(Equal(one))
	g.Expect(len(one)).To(BeNumerically("<", 108))
}

func TestFoldersThatContainerdCannotMountAreRefused(t *testing.T) {
	for _, name := range []string{"a:b", "a,b", `a"b`, `a\b`, "a{b"} {
		lab := &Lab{Spec: Spec{Nodes: 1}, Dir: "/somewhere/" + name}
		NewWithT(t).Expect(checkName(lab)).To(MatchError(ContainSubstring("choose another with --dir")), name)
	}
	g := NewWithT(t)
	g.Expect(checkName(&Lab{Spec: Spec{Nodes: 1}, Dir: "/some where/ä+b"})).To(Succeed())
	g.Expect(checkName(&Lab{Dir: "/somewhere/a:b"})).To(Succeed(), "nothing is mounted without nodes")
}
