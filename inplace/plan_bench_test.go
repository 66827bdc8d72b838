// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"runtime"
	"testing"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// A pass over ten times the pods takes ten times as much, not more. Time is too
// noisy to be tested; the memory that is allocated is not.
func TestMakePlanTakesInProportion(t *testing.T) {
	g := NewWithT(t)
	perPod := func(pods int) float64 {
		w := big(t, pods)
		MakePlan(w, planned) // a pass after others knows the records
		before, after := runtime.MemStats{}, runtime.MemStats{}
		runtime.ReadMemStats(&before)
		MakePlan(w, planned)
		runtime.ReadMemStats(&after)
		return float64(after.TotalAlloc-before.TotalAlloc) / float64(pods)
	}
	g.Expect(perPod(10_000)).To(BeNumerically("<", 1.2*perPod(1000)))
}

// What is said of all pods is said once, and what the templates tell is not asked of each pod.
func TestMakePlanAllocatesLittle(t *testing.T) {
	g := NewWithT(t)
	const pods = 1000
	w := big(t, pods)
	perPod := testing.AllocsPerRun(3, func() { MakePlan(w, planned) }) / pods
	g.Expect(perPod).To(BeNumerically("<", 15), "13 when this was written")

	w.Target.Policy = appsv1beta1.RecreatePodUpdateStrategyType
	perPod = testing.AllocsPerRun(3, func() { MakePlan(w, planned) }) / pods
	g.Expect(perPod).To(BeNumerically("<", 13), "11 when this was written")
}

func BenchmarkMakePlan(b *testing.B) {
	for _, pods := range []int{1000, 5000, 10_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			w := big(b, pods)
			b.ReportAllocs()
			for b.Loop() {
				MakePlan(w, planned)
			}
		})
	}
}

// Pods that were resized once are told by their managedFields whose sizes they have,
// and their sizes are compared each time.
func BenchmarkMakePlanOfResizedPods(b *testing.B) {
	for _, pods := range []int{1000, 10_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			w := workloadAt(pods, "large", "large", func(_ int, pod *builders.PodBuilder) {
				written("150m", "96Mi")(pod)
				pod.InForce("150m", "96Mi")
			})
			b.ReportAllocs()
			for b.Loop() {
				MakePlan(w, after(60))
			}
		})
	}
}
