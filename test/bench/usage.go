// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"
)

// process is a process whose use of the machine is measured.
type process struct {
	name string
	proc procfs.Proc
}

func newProcess(name string, pid int) (process, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return process{}, fmt.Errorf("find process of %s: %w", name, err)
	}
	return process{name, proc}, nil
}

// cpu is the time that the process has spent on processors so far.
func (p process) cpu() (time.Duration, error) {
	stat, err := p.proc.Stat()
	if err != nil {
		return 0, fmt.Errorf("read CPU time of %s: %w", p.name, err)
	}
	return time.Duration(stat.CPUTime() * float64(time.Second)), nil
}

// memory returns how many bytes of memory the process has, and the most that it
// had since resetPeak.
func (p process) memory() (now, peak uint64, err error) {
	status, err := p.proc.NewStatus()
	if err != nil {
		return 0, 0, fmt.Errorf("read memory of %s: %w", p.name, err)
	}
	return status.VmRSS, status.VmHWM, nil
}

// resetPeak starts the measurement of the peak again.
//
// Source of the value: proc_pid_clear_refs(5).
func (p process) resetPeak() error {
	path := filepath.Join(procfs.DefaultMountPoint, fmt.Sprint(p.proc.PID), "clear_refs")
	if err := os.WriteFile(path, []byte("5"), 0); err != nil {
		return fmt.Errorf("reset peak memory of %s: %w", p.name, err)
	}
	return nil
}

// labPrograms are the programs of a lab that work during a rollout.
var labPrograms = []string{"kube-apiserver", "etcd", "simulated-nodes", "kube-controller-manager"}

// labProcesses finds the programs of the lab in a folder, whose path is absolute.
func labProcesses(lab string) ([]process, error) {
	all, err := procfs.AllProcs()
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var found []process
	for _, proc := range all {
		args, err := proc.CmdLine()
		if err != nil {
			continue // it ended meanwhile
		}
		if name := labProgram(args, lab); slices.Contains(labPrograms, name) {
			found = append(found, process{name, proc})
		}
	}
	if len(found) != len(labPrograms) {
		return nil, fmt.Errorf("found %d of the programs %v of the lab in %s: is it up?", len(found), labPrograms, lab)
	}
	return found, nil
}

// labProgram returns which program of a lab a command line is, empty if none. A
// program of Kubernetes is called by its name and gets paths in the lab; the
// lab's own are called "lab --dir FOLDER NAME".
func labProgram(args []string, lab string) string {
	switch {
	case len(args) == 4 && args[0] == "lab" && args[2] == lab:
		return args[3]
	case len(args) > 1 && strings.Contains(strings.Join(args[1:], " "), lab+"/"):
		return args[0]
	default:
		return ""
	}
}

// scrape returns the sum of each of the metrics that are served at a URL.
func scrape(ctx context.Context, url string) (map[string]float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	return parseMetrics(response.Body)
}

func parseMetrics(text io.Reader) (map[string]float64, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(text)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	sums := map[string]float64{}
	for name, family := range families {
		for _, metric := range family.GetMetric() {
			sums[name] += metric.GetGauge().GetValue() + metric.GetCounter().GetValue() + metric.GetHistogram().GetSampleSum()
		}
	}
	return sums, nil
}
