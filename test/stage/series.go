// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/insitu-dev/insitu/controllers/metrics"
)

// Measured is what a reconciler measures with, and a registry of its own.
type Measured struct {
	metrics.Metrics
	registry *prometheus.Registry
}

// NewMeasured returns what has measured nothing yet.
func NewMeasured() *Measured {
	GinkgoHelper()
	m := &Measured{Metrics: metrics.New(), registry: prometheus.NewPedanticRegistry()}
	Expect(m.Register(m.registry, metrics.Build{})).To(Succeed())
	return m
}

// Series returns the values of the series of one metric that are not zero, by the
// values of their labels other than kind, namespace and name: "Draining", and "" if
// there is no other. Of a histogram it is the number of observations.
func (m *Measured) Series(name string) map[string]float64 {
	GinkgoHelper()
	families, err := m.registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	series := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.Metric {
			var labels []string
			for _, label := range metric.Label {
				switch label.GetName() {
				case "kind", "namespace", "name":
				default:
					labels = append(labels, label.GetValue())
				}
			}
			value := metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + float64(metric.GetHistogram().GetSampleCount())
			if value != 0 {
				series[strings.Join(labels, " ")] += value
			}
		}
	}
	return series
}

// Count returns how many series of a metric there are, those that are zero included.
func (m *Measured) Count(name string) int {
	GinkgoHelper()
	count, err := testutil.GatherAndCount(m.registry, name)
	Expect(err).NotTo(HaveOccurred())
	return count
}

// ExpectNoRollout expects that there are no series of workloads.
func (m *Measured) ExpectNoRollout() {
	GinkgoHelper()
	families, err := m.registry.Gather()
	Expect(err).NotTo(HaveOccurred())
	for _, family := range families {
		Expect(family.GetName()).NotTo(HavePrefix("insitu_rollout_"), fmt.Sprint(family.Metric))
	}
}
