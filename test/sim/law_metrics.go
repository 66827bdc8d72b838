// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/insitu-dev/insitu/controllers/metrics"
)

// rolloutSeries returns the series that a manager has of workloads: what they are of,
// and the state or the reason.
func (w *World) rolloutSeries(measured metrics.Metrics) map[string][]string {
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(measured.Rollouts); err != nil {
		w.violate("metrics: %v", err)
	}
	families, err := registry.Gather()
	if err != nil {
		w.violate("metrics: %v", err)
	}
	series := map[string][]string{}
	for _, family := range families {
		for _, metric := range family.Metric {
			series[family.GetName()] = append(series[family.GetName()], lastWord(metric))
		}
	}
	return series
}

// lastWord returns the state or the reason of a series; empty if it has none.
func lastWord(metric *dto.Metric) string {
	for _, label := range metric.Label {
		if name := label.GetName(); name == "state" || name == "reason" {
			return label.GetValue()
		}
	}
	return ""
}

// checkMetrics asserts what a manager told of its workload when it died.
func (w *World) checkMetrics(measured metrics.Metrics) {
	for name, words := range w.rolloutSeries(measured) {
		for _, word := range words {
			if word == "Other" {
				w.violate("metrics: %s has a reason that is in no list", name)
			}
		}
	}
}

// checkMetricsAtRest asserts that nothing is told of a workload that is at rest.
func (w *World) checkMetricsAtRest() {
	if set := w.set(); w.native == nil && set != nil && len(set.Status.Blockers) > 0 {
		return // its claims cannot follow
	}
	if series := w.rolloutSeries(w.manager.measured); len(series) > 0 {
		w.violate("metrics: it is at rest, and there are %v", series)
	}
}
