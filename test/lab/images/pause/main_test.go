// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"testing"

	. "github.com/onsi/gomega"
)

func TestReapCollectsEveryChildThatHasEnded(t *testing.T) {
	g := NewWithT(t)
	for range 3 {
		g.Expect(exec.Command("sleep", "0").Start()).To(Succeed())
	}
	reapAll := func() bool {
		reap()
		return exec.Command("sh", "-c", `! ps -o stat= --ppid $PPID | grep -q Z`).Run() == nil
	}
	g.Eventually(reapAll).Should(BeTrue())
}
