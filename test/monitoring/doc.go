// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests what comes with the metrics: the alerts of
// config/prometheus and the Grafana board of config/grafana, with Debian's Prometheus.
//
// PROMETHEUS_ASSETS names the folder of prometheus and promtool; hack/prometheus
// brings them and prints it. make test-monitoring does both.
package monitoring
