// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestLabProgram(t *testing.T) {
	g := NewWithT(t)
	for line, want := range map[string]string{
		"kube-apiserver --cert-dir=/src/.lab-bench/state/pki":   "kube-apiserver",
		"etcd --name=lab --data-dir=/src/.lab-bench/state/etcd": "etcd",
		"lab --dir /src/.lab-bench simulated-nodes":             "simulated-nodes",
		"lab --dir /src/.lab-bench-2 simulated-nodes":           "",
		"etcd --name=lab --data-dir=/src/.lab/state/etcd":       "",
		"kube-apiserver": "",
	} {
		g.Expect(labProgram(strings.Fields(line), "/src/.lab-bench")).To(Equal(want), line)
	}
}

func TestMetricsAreSummedUp(t *testing.T) {
	g := NewWithT(t)
	sums, err := parseMetrics(strings.NewReader(strings.Join([]string{
		"# TYPE go_memstats_heap_inuse_bytes gauge",
		"go_memstats_heap_inuse_bytes 1.7e+07",
		"# TYPE controller_runtime_reconcile_total counter",
		`controller_runtime_reconcile_total{controller="statefulset",result="success"} 40`,
		`controller_runtime_reconcile_total{controller="statefulset",result="requeue_after"} 2`,
		"# TYPE controller_runtime_reconcile_time_seconds histogram",
		`controller_runtime_reconcile_time_seconds_bucket{controller="statefulset",le="+Inf"} 42`,
		`controller_runtime_reconcile_time_seconds_sum{controller="statefulset"} 5.5`,
		`controller_runtime_reconcile_time_seconds_count{controller="statefulset"} 42`,
		"",
	}, "\n")))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sums).To(Equal(map[string]float64{heapInUse: 1.7e7, reconcileTotal: 42, reconcileSeconds: 5.5}))
}

func TestAProcessIsMeasured(t *testing.T) {
	g := NewWithT(t)
	self, err := newProcess("self", os.Getpid())
	g.Expect(err).NotTo(HaveOccurred())
	now, peak, err := self.memory()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(now).To(BeNumerically(">", 1<<20))
	g.Expect(peak).To(BeNumerically(">=", now))
	before, err := self.cpu()
	g.Expect(err).NotTo(HaveOccurred())
	// As soon as the kernel's clock ticks.
	g.Eventually(self.cpu, "1m", "1ns").Should(BeNumerically(">", before))
}
