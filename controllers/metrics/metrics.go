// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package metrics puts together what the packages of the controllers measure.
package metrics

import (
	"fmt"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/recreate"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/controllers/writes"
)

// Metrics are those of all controllers. The zero Metrics measure nothing.
type Metrics struct {
	Rollouts    *workload.Metrics
	Moves       *executor.Metrics
	Recreations *recreate.Metrics
	Writes      *writes.Metrics
}

// New returns metrics that have measured nothing.
func New() Metrics {
	return Metrics{
		Rollouts: workload.NewMetrics(), Moves: executor.NewMetrics(),
		Recreations: recreate.NewMetrics(), Writes: writes.NewMetrics(),
	}
}

// Build is what a binary was made from.
type Build struct {
	Version, Commit string
}

// Collectors returns all that there is to be registered, for a build.
func (m Metrics) Collectors(build Build) []prometheus.Collector {
	info := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "insitu_build_info",
		Help: "1, with what the manager was built from in its labels.",
	}, []string{"version", "commit", "goversion"})
	info.WithLabelValues(build.Version, build.Commit, runtime.Version()).Set(1)
	all := []prometheus.Collector{info}
	for _, some := range [][]prometheus.Collector{
		m.Rollouts.Collectors(), m.Moves.Collectors(), m.Recreations.Collectors(), m.Writes.Collectors(),
	} {
		all = append(all, some...)
	}
	return all
}

// Register registers the metrics of a build.
func (m Metrics) Register(registry prometheus.Registerer, build Build) error {
	for _, collector := range m.Collectors(build) {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}
