// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/procfs"
)

// result is what was measured with one workload. The field names are those of
// .out/bench.json, which others read: times are in seconds, sizes in bytes.
type result struct {
	Kind    string  `json:"kind"`
	Change  string  `json:"change"`
	Pods    int     `json:"pods"`
	Service bool    `json:"service"`
	Machine machine `json:"machine"`
	// EmptyBytes is the memory of the manager before there were pods.
	EmptyBytes uint64 `json:"emptyBytes"`
	// Rollouts are in the order in which they were made.
	Rollouts []rollout `json:"rollouts"`
}

// machine is where it was measured. Figures of different machines do not compare.
type machine struct {
	CPU   string `json:"cpu"`
	Cores int    `json:"cores"`
	Go    string `json:"go"`
}

// rollout is what one update of all pods took.
type rollout struct {
	By string `json:"by"`
	// MaxUnavailable is the budget, which for a resize is its maxConcurrent.
	MaxUnavailable string `json:"maxUnavailable"`
	// Seconds is the time until all pods were available again, as far as whoever
	// made the rollout knew.
	Seconds float64 `json:"seconds"`
	// CPUSeconds is the CPU time by process: of who made the rollout, and of the
	// programs of the cluster.
	CPUSeconds map[string]float64 `json:"cpuSeconds"`
	// PeakBytes is the most memory that who made the rollout had meanwhile,
	// HeapBytes what the manager's heap took after it.
	PeakBytes uint64 `json:"peakBytes"`
	HeapBytes uint64 `json:"heapBytes,omitempty"`
	// Requests are the requests by kind, such as "patch pods/status".
	Requests map[string]int `json:"requests"`
	// Reconciliations and the time spent in them are the manager's.
	Reconciliations  int     `json:"reconciliations,omitempty"`
	ReconcileSeconds float64 `json:"reconcileSeconds,omitempty"`
}

// Who makes a rollout, and the name of the process in rollout.CPUSeconds.
const (
	byManager = "insitu"
	byMinimal = "minimal client"
)

// rollout returns the rollout that one of them made with a budget, nil if
// there is none.
func (r *result) rollout(by, maxUnavailable string) *rollout {
	for i := range r.Rollouts {
		if r.Rollouts[i].By == by && r.Rollouts[i].MaxUnavailable == maxUnavailable {
			return &r.Rollouts[i]
		}
	}
	return nil
}

// planning is one result of the planner's benchmark.
type planning struct {
	Pods        int     `json:"pods"`
	Seconds     float64 `json:"seconds"`
	Bytes       float64 `json:"bytes"`
	Allocations float64 `json:"allocations"`
}

// planLine is a line of go test -bench MakePlan -benchmem.
var planLine = regexp.MustCompile(`^BenchmarkMakePlan/pods=(\d+)\S*\s+\d+\s+([\d.]+) ns/op\s+([\d.]+) B/op\s+([\d.]+) allocs/op`)

func parsePlanning(output []byte) []planning {
	var all []planning
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		if found := planLine.FindStringSubmatch(lines.Text()); found != nil {
			all = append(all, planning{
				Pods: int(number(found[1])), Seconds: number(found[2]) / 1e9, Bytes: number(found[3]), Allocations: number(found[4]),
			})
		}
	}
	return all
}

// number reads what planLine found, which are digits.
func number(digits string) float64 {
	n, _ := strconv.ParseFloat(digits, 64)
	return n
}

// report is all that make bench has measured.
type report struct {
	Planning []planning `json:"planning"`
	Results  []result   `json:"results"`
}

// readReport puts together the planner's benchmark, if there is a file of it, and
// results. They are sorted by kind, change and number of pods.
func readReport(plan string, files []string) (*report, error) {
	r := &report{}
	if plan != "" {
		output, err := os.ReadFile(plan)
		if err != nil {
			return nil, fmt.Errorf("read the planner's benchmark: %w", err)
		}
		if r.Planning = parsePlanning(output); len(r.Planning) == 0 {
			return nil, fmt.Errorf("read the planner's benchmark: %s has no result", plan)
		}
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read result: %w", err)
		}
		one := result{}
		if err := json.Unmarshal(data, &one); err != nil {
			return nil, fmt.Errorf("read result %s: %w", file, err)
		}
		r.Results = append(r.Results, one)
	}
	slices.SortStableFunc(r.Results, func(a, b result) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Pods, b.Pods))
	})
	return r, nil
}

// check returns an error if pods were written to more often than they need. That
// they got what they need is checked by bench.checkPods; an answer that came too
// late is no proof of the contrary. All else depends on the machine.
func (r *report) check() error {
	var errs []error
	for i := range r.Results {
		one := &r.Results[i]
		most := changes[one.Change].writes
		for _, rollout := range one.Rollouts {
			if writes := podWritesIn(rollout.Requests); writes > most*one.Pods {
				errs = append(errs, fmt.Errorf("%s of a %s with %d pods, budget %s, by %s: found %d writes to pods, want at most %d for each",
					one.Change, one.Kind, one.Pods, rollout.MaxUnavailable, rollout.By, writes, most))
			}
		}
	}
	return errors.Join(errs...)
}

// thisMachine describes the machine that this runs on.
func thisMachine() machine {
	m := machine{CPU: "unknown", Cores: runtime.NumCPU(), Go: runtime.Version()}
	if fs, err := procfs.NewDefaultFS(); err == nil {
		if cpus, err := fs.CPUInfo(); err == nil && len(cpus) > 0 {
			m.CPU = cpus[0].ModelName
		}
	}
	return m
}

func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write figures: %w", err)
	}
	return nil
}
