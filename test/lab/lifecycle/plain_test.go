// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build lab

package lifecycle

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestLabWithoutNodes(t *testing.T) {
	g := NewWithT(t)
	before := lookAround(g)
	lab := newLab(t)
	lab.succeed("up", "--nodes", "0", "--simulated-nodes", "2")
	names, err := lab.kubectl("get", "nodes", "-o", "jsonpath={.items[*].metadata.name}")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(names).To(Equal("sim-1 sim-2"))

	lab.killSupervisor()
	lab.succeed("down")
	expectNoTrace(g, before)
}
