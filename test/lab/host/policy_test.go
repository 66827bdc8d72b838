// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
)

func newPolicy(t *testing.T) servicePolicy {
	t.Helper()
	return servicePolicy(filepath.Join(t.TempDir(), "policy-rc.d"))
}

func TestServicesAreForbiddenUntilTheyAreAllowed(t *testing.T) {
	g := NewWithT(t)
	policy := newPolicy(t)
	allow, err := policy.forbid()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(read(g, string(policy))).To(Equal(labPolicy))
	g.Expect(policy.sweep(func(string) {})).To(Succeed())
	g.Expect(string(policy)).To(BeAnExistingFile(), "a lab still installs")
	allow()
	g.Expect(string(policy)).NotTo(BeAnExistingFile())
}

func TestAPolicyOfTheUserStays(t *testing.T) {
	g := NewWithT(t)
	policy := newPolicy(t)
	g.Expect(os.WriteFile(string(policy), []byte("#!/bin/sh\nexit 101\n"), 0o755)).To(Succeed())
	allow, err := policy.forbid()
	g.Expect(err).NotTo(HaveOccurred())
	allow()
	g.Expect(policy.sweep(func(string) {})).To(Succeed())
	g.Expect(read(g, string(policy))).To(Equal("#!/bin/sh\nexit 101\n"))
}

// The lab was killed before it could allow services again.
func TestAPolicyThatALabLeftGoes(t *testing.T) {
	for name, remove := range map[string]func(servicePolicy) error{
		"by a sweep": func(p servicePolicy) error { return p.sweep(func(string) {}) },
		"after the next installation": func(p servicePolicy) error {
			allow, err := p.forbid()
			if err == nil {
				allow()
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			policy := newPolicy(t)
			g.Expect(policy.write()).To(Succeed())
			g.Expect(remove(policy)).To(Succeed())
			g.Expect(string(policy)).NotTo(BeAnExistingFile())
		})
	}
}
