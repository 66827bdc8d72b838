// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

// A pass over ten times the pods costs ten times as much, not more. Time is too
// noisy to be tested; allocations are not.
func TestMakePlanAllocatesInProportion(t *testing.T) {
	g := NewWithT(t)
	perPod := func(pods int) float64 {
		w := big(t, pods)
		return testing.AllocsPerRun(3, func() { MakePlan(w, planned) }) / float64(pods)
	}
	g.Expect(perPod(10_000)).To(BeNumerically("<", 1.2*perPod(1000)))
}

func BenchmarkMakePlan(b *testing.B) {
	for _, pods := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			w := big(b, pods)
			b.ReportAllocs()
			for b.Loop() {
				MakePlan(w, planned)
			}
		})
	}
}
