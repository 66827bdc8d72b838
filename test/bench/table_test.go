// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// sample is a result in which each figure of the table is another one.
func sample() result {
	return result{
		Kind: "StatefulSet", Change: "image", Pods: 500, Machine: machine{CPU: "Fast CPU", Cores: 2, Go: "go1.26"}, EmptyBytes: 50e6,
		Rollouts: []rollout{
			{
				By: byManager, MaxUnavailable: "100%", Seconds: 12, CPUSeconds: map[string]float64{"insitu": 2, "etcd": 1, "kube-apiserver": 3},
				PeakBytes: 56e6, HeapBytes: 20e6, Reconciliations: 7, ReconcileSeconds: 9,
				Requests: map[string]int{"patch pods/status": 1000, "patch pods": 500, "create events": 2000, "patch statefulsets/status": 7, "create controllerrevisions": 1},
			},
			{
				By: byMinimal, MaxUnavailable: "100%", Seconds: 10, CPUSeconds: map[string]float64{"minimal client": 0.5, "etcd": 0.75},
				Requests: map[string]int{"patch pods/status": 1000, "patch pods": 500},
			},
		},
	}
}

func TestTable(t *testing.T) {
	g := NewWithT(t)
	r := report{Results: []result{sample()}, Planning: []planning{{Pods: 10_000, Seconds: 0.164, Bytes: 96e6, Allocations: 990_035}}}
	table := r.table()

	g.Expect(table).To(HavePrefix("\nFast CPU, 2 cores, go1.26\n"))
	lines := map[string]string{}
	for line := range strings.Lines(table) {
		if fields := strings.Fields(line); len(fields) > 1 {
			lines[strings.Join(fields, " ")] = line
		}
	}
	for _, line := range []string{
		"change image", "pods 500", "maxUnavailable or maxConcurrent 100% goal",
		"insitu 12.0 s", "minimal client 10.0 s", "ratio 1.20 <= 1.3 at 100%", "reconciliations 7", "share of time in reconciliations 75%",
		"writes to pods, insitu 3.000 3.0", "writes to pods, minimal client 3.000",
		"create events 4.000", "patch pods 1.000", "patch pods/status 2.000", "patch statefulsets/status 0.014", "create controllerrevisions 1 in all",
		"insitu 4.0 ms", "minimal client 1.0 ms", "the cluster, with insitu 8.0 ms", "the cluster, with minimal client 1.5 ms", "ratio of all together 4.80",
		"without pods 50 MB", "peak 56 MB", "heap in use after it 20 MB", "peak per pod 12.0 KB <= 15 KB",
		"planning 10000 pods: 164.0 ms a pass (goal: < 50 ms for 10000); per pod 9.6 KB and 99 allocations",
	} {
		g.Expect(lines).To(HaveKey(line))
	}
	g.Expect(strings.Count(table, "100%")).To(Equal(2), "a column and a goal; 10% was not measured")
}

func TestWritesToPodsAreChecked(t *testing.T) {
	g := NewWithT(t)
	right, late, wrong, unlike, resize := sample(), sample(), sample(), sample(), sample()
	late.Rollouts[0].Requests["patch pods"], late.Rollouts[0].Requests["patch pods (504)"] = 499, 1
	wrong.Rollouts[0].Requests["patch pods/status"] = 1001
	unlike.Rollouts[1].Requests["patch pods/status"] = 1002

	g.Expect((&report{Results: []result{right, late}}).check()).To(Succeed())
	g.Expect((&report{Results: []result{right, wrong}}).check()).To(MatchError(
		"image of a StatefulSet with 500 pods, budget 100%, by insitu: found 1501 writes to pods, want at most 3 for each"))
	g.Expect((&report{Results: []result{unlike}}).check()).To(MatchError(ContainSubstring("by minimal client: found 1502")))
	resize.Change = "resize"
	resize.Rollouts[0].Requests = map[string]int{"patch pods/resize": 500, "patch pods": 501}
	g.Expect((&report{Results: []result{resize}}).check()).To(MatchError(ContainSubstring("by insitu: found 1001 writes to pods, want at most 2")))
}

func TestReportIsReadFromFiles(t *testing.T) {
	g := NewWithT(t)
	folder := t.TempDir()
	plan, file := filepath.Join(folder, "planning.txt"), filepath.Join(folder, "StatefulSet-image-500.json")
	output := "cpu: Fast CPU\nBenchmarkMakePlan/pods=1000-2 \t 79\t  15172977 ns/op\t 9112563 B/op\t   99039 allocs/op\nPASS\n"
	g.Expect(os.WriteFile(plan, []byte(output), 0o600)).To(Succeed())
	g.Expect(writeJSON(file, sample())).To(Succeed())
	resize, resizeFile := sample(), filepath.Join(folder, "StatefulSet-resize-500.json")
	resize.Change = "resize"
	g.Expect(writeJSON(resizeFile, resize)).To(Succeed())
	large, largeFile := sample(), filepath.Join(folder, "StatefulSet-image-2000.json")
	large.Pods = 2000
	g.Expect(writeJSON(largeFile, large)).To(Succeed())

	r, err := readReport(plan, []string{resizeFile, largeFile, file})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(r.Results).To(Equal([]result{sample(), large, resize}), "in the order of their size, not of their names")
	g.Expect(r.Planning).To(Equal([]planning{{Pods: 1000, Seconds: 0.015172977, Bytes: 9112563, Allocations: 99039}}))

	g.Expect(os.WriteFile(plan, []byte("FAIL\n"), 0o600)).To(Succeed())
	_, err = readReport(plan, nil)
	g.Expect(err).To(MatchError(ContainSubstring("has no result")))
}
