// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Goals. They are not asserted; that of the writes is, see report.check.
const (
	goalTimeRatio = "<= 1.3 at 100%"
	goalMemory    = "<= 15 KB"
	goalPlanning  = "< 50 ms for 10000"
)

// column is one column of the table: a rollout by the manager, and the same by
// the minimal client.
type column struct {
	result  *result
	manager *rollout
	minimal *rollout
}

// table returns all figures in one table, a column for each rollout.
func (r *report) table() string {
	text := &strings.Builder{}
	if len(r.Results) > 0 {
		m := r.Results[0].Machine
		fmt.Fprintf(text, "\n%s, %d cores, %s\n\n", m.CPU, m.Cores, m.Go)
	}
	t := &table{out: tabwriter.NewWriter(text, 0, 0, 2, ' ', tabwriter.AlignRight), columns: r.columns()}
	t.heads()
	t.time()
	t.requests()
	t.cpu()
	t.memory()
	_ = t.out.Flush() // a builder takes everything
	text.WriteString("\n" + r.planningLines())
	return text.String()
}

func (r *report) columns() []column {
	var all []column
	for i := range r.Results {
		one := &r.Results[i]
		for _, budget := range budgets {
			c := column{one, one.rollout(byManager, budget), one.rollout(byMinimal, budget)}
			if c.manager != nil && c.minimal != nil {
				all = append(all, c)
			}
		}
	}
	return all
}

type table struct {
	out     *tabwriter.Writer
	columns []column
}

// row writes one row. The first cell is padded on its right, the others on their
// left.
func (t *table) row(name, goal string, cell func(column) string) {
	fmt.Fprintf(t.out, "%-*s\t", nameWidth, name)
	for _, c := range t.columns {
		fmt.Fprintf(t.out, "%s\t", cell(c))
	}
	fmt.Fprintf(t.out, "   %-*s\t\n", goalWidth, goal)
}

const (
	nameWidth = 38
	goalWidth = len(goalTimeRatio)
)

func (t *table) section(name string) {
	t.row("", "", func(column) string { return "" })
	t.row(name, "", func(column) string { return "" })
}

func (t *table) heads() {
	t.row("", "", func(c column) string { return c.result.Kind })
	t.row("change", "", func(c column) string { return c.result.Change })
	t.row("pods", "", func(c column) string { return fmt.Sprint(c.result.Pods) })
	t.row("maxUnavailable or maxConcurrent", "goal", func(c column) string { return c.manager.MaxUnavailable })
	if slices.ContainsFunc(t.columns, func(c column) bool { return c.result.Service }) {
		t.row("behind a Service", "", func(c column) string { return fmt.Sprint(c.result.Service) })
	}
}

func (t *table) time() {
	t.section("time")
	t.row("  insitu", "", func(c column) string { return fmt.Sprintf("%.1f s", c.manager.Seconds) })
	t.row("  minimal client", "", func(c column) string { return fmt.Sprintf("%.1f s", c.minimal.Seconds) })
	t.row("  ratio", goalTimeRatio, func(c column) string { return fmt.Sprintf("%.2f", c.manager.Seconds/c.minimal.Seconds) })
	t.row("  reconciliations", "", func(c column) string { return fmt.Sprint(c.manager.Reconciliations) })
	t.row("  share of time in reconciliations", "", func(c column) string {
		return fmt.Sprintf("%.0f%%", 100*c.manager.ReconcileSeconds/c.manager.Seconds)
	})
}

func (t *table) requests() {
	t.section("requests per pod")
	t.row("  writes to pods, insitu", t.goalWrites(), func(c column) string { return perPod(podWritesIn(c.manager.Requests), c) })
	t.row("  writes to pods, minimal client", "", func(c column) string { return perPod(podWritesIn(c.minimal.Requests), c) })
	kinds := map[string]bool{}
	for _, c := range t.columns {
		for what := range c.manager.Requests {
			kinds[what] = true
		}
	}
	for _, what := range slices.Sorted(maps.Keys(kinds)) {
		t.row("    "+what, "", func(c column) string { return perPod(c.manager.Requests[what], c) })
	}
}

// goalWrites are the writes that the changes may take, in the order of the columns.
func (t *table) goalWrites() string {
	var goals []string
	for _, c := range t.columns {
		if goal := fmt.Sprintf("%d.0", changes[c.result.Change].writes); !slices.Contains(goals, goal) {
			goals = append(goals, goal)
		}
	}
	return strings.Join(goals, " / ")
}

// perPod says how many requests of a kind there were for each pod, or in all if
// they have little to do with the pods.
func perPod(n int, c column) string {
	average := float64(n) / float64(c.result.Pods)
	switch {
	case n == 0:
		return "-"
	case average < 0.01:
		return fmt.Sprintf("%d in all", n)
	default:
		return fmt.Sprintf("%.3f", average)
	}
}

func (t *table) cpu() {
	t.section("CPU time per pod")
	cell := func(seconds float64, c column) string {
		return fmt.Sprintf("%.1f ms", 1000*seconds/float64(c.result.Pods))
	}
	t.row("  insitu", "", func(c column) string { return cell(c.manager.CPUSeconds[byManager], c) })
	t.row("  minimal client", "", func(c column) string { return cell(c.minimal.CPUSeconds[byMinimal], c) })
	t.row("  the cluster, with insitu", "", func(c column) string { return cell(c.manager.clusterCPU(), c) })
	t.row("  the cluster, with minimal client", "", func(c column) string { return cell(c.minimal.clusterCPU(), c) })
	t.row("  ratio of all together", "", func(c column) string {
		return fmt.Sprintf("%.2f", (c.manager.CPUSeconds[byManager]+c.manager.clusterCPU())/(c.minimal.CPUSeconds[byMinimal]+c.minimal.clusterCPU()))
	})
}

// clusterCPU is the CPU time that the programs of the lab spent.
func (r *rollout) clusterCPU() float64 {
	spent := 0.0
	for _, program := range labPrograms {
		spent += r.CPUSeconds[program]
	}
	return spent
}

func (t *table) memory() {
	t.section("memory of insitu")
	t.row("  without pods", "", func(c column) string { return megabytes(c.result.EmptyBytes) })
	t.row("  peak", "", func(c column) string { return megabytes(c.manager.PeakBytes) })
	t.row("  heap in use after it", "", func(c column) string { return megabytes(c.manager.HeapBytes) })
	t.row("  peak per pod", goalMemory, func(c column) string {
		return fmt.Sprintf("%.1f KB", (float64(c.manager.PeakBytes)-float64(c.result.EmptyBytes))/float64(c.result.Pods)/1000)
	})
}

func megabytes(bytes uint64) string { return fmt.Sprintf("%.0f MB", float64(bytes)/1e6) }

// planningLines returns what a pass of the planner takes, by its own benchmark.
func (r *report) planningLines() string {
	text := &strings.Builder{}
	for _, p := range r.Planning {
		fmt.Fprintf(text, "planning %d pods: %.1f ms a pass (goal: %s); per pod %.1f KB and %.0f allocations\n",
			p.Pods, 1000*p.Seconds, goalPlanning, p.Bytes/1000/float64(p.Pods), p.Allocations/float64(p.Pods))
	}
	return text.String()
}
