// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/hack/marked"
)

func TestTable(t *testing.T) {
	g := NewWithT(t)
	described, err := describe([]prometheus.Collector{
		prometheus.NewCounterVec(prometheus.CounterOpts{Name: "b_total", Help: "Bs, by a and c."}, []string{"a", "c"}),
		prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "c_seconds", Help: "How long."}, []string{"a"}),
		prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "a_info", Help: "What."}, []string{"x"}),
	})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(table(described)).To(Equal("| Metric | Type | Labels | |\n|---|---|---|---|\n" +
		"| `a_info` | gauge | `x` | What. |\n| `b_total` | counter | `a`, `c` | Bs, by a and c. |\n| `c_seconds` | histogram | `a` | How long. |\n"))
}

// TestTheDocumentIsUpToDate: hack/verify says it too, and takes longer.
func TestTheDocumentIsUpToDate(t *testing.T) {
	g := NewWithT(t)
	before, err := os.ReadFile(filepath.Join("..", "..", document))
	g.Expect(err).NotTo(HaveOccurred())
	described, err := describe(metrics.New().Collectors(metrics.Build{}))
	g.Expect(err).NotTo(HaveOccurred())
	for _, m := range described {
		g.Expect(m.name).To(HavePrefix("insitu_"))
		g.Expect(strings.HasSuffix(m.name, "_total")).To(Equal(m.kind == "counter"), m.name)
	}
	g.Expect(marked.Replace(string(before), generator, table(described))).To(Equal(string(before)), "run make generate")
}
