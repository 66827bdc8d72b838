// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command metricsdoc writes the table of metrics in docs/metrics.md from the metrics
// that the manager registers. What stands around the table is written by hand.
//
// Run it from the root of the repository: go run ./hack/metricsdoc
package main

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/hack/marked"
)

const (
	document  = "docs/metrics.md"
	generator = "hack/metricsdoc"
)

func main() {
	if err := run(document); err != nil {
		fmt.Fprintln(os.Stderr, "metricsdoc:", err)
		os.Exit(1)
	}
}

// run writes the table into a document.
func run(path string) error {
	described, err := describe(metrics.New().Collectors(metrics.Build{}))
	if err != nil {
		return err
	}

	return marked.ReplaceIn(path, generator, table(described))
}

// metric is what is told of one metric.
type metric struct {
	name, kind, help string
	labels           []string
}

// describe returns what collectors collect, by name.
func describe(collectors []prometheus.Collector) ([]metric, error) {
	var all []metric
	for _, collector := range collectors {
		descs := make(chan *prometheus.Desc, 100)
		collector.Describe(descs)
		close(descs)
		for desc := range descs {
			described, err := parse(desc)
			if err != nil {
				return nil, err
			}
			described.kind = kindOf(collector)
			all = append(all, described)
		}
	}
	slices.SortFunc(all, func(a, b metric) int { return cmp.Compare(a.name, b.name) })

	return all, nil
}

// kindOf returns the type of what is collected. Our own collectors collect gauges.
func kindOf(collector prometheus.Collector) string {
	switch collector.(type) {
	case *prometheus.CounterVec:
		return "counter"
	case *prometheus.HistogramVec:
		return "histogram"
	default:
		return "gauge"
	}
}

// descPattern is how a description prints itself. It tells what it says in no other
// way.
var descPattern = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: "([^"]+)", unit: "", constLabels: \{\}, variableLabels: \{([^}]*)\}\}$`)

func parse(desc *prometheus.Desc) (metric, error) {
	found := descPattern.FindStringSubmatch(desc.String())
	if found == nil {
		return metric{}, fmt.Errorf("read description: found %s", desc)
	}

	return metric{name: found[1], help: found[2], labels: strings.Split(found[3], ",")}, nil
}

func table(all []metric) string {
	var text strings.Builder
	text.WriteString("| Metric | Type | Labels | |\n|---|---|---|---|\n")
	for _, m := range all {
		fmt.Fprintf(&text, "| `%s` | %s | `%s` | %s |\n", m.name, m.kind, strings.Join(m.labels, "`, `"), m.help)
	}

	return text.String()
}
