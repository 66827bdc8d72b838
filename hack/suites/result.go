// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/onsi/ginkgo/v2/reporters"
)

// result is what a suite came to.
type result struct {
	Suite string        `json:"suite"`
	Wall  time.Duration `json:"wall"`
	usage
	attempts
	Tests   int `json:"tests"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	// Status is what its command exited with.
	Status int `json:"status"`
}

// usage is what a command and all its descendants took and left.
type usage struct {
	// CPU is the time of all cores together.
	CPU time.Duration `json:"cpu"`
	// Left names the processes that were still there when the command had ended.
	Left []string `json:"left,omitempty"`
}

// isGood reports whether everything passed and nothing was left behind.
func (r result) isGood() bool {
	return r.Status == 0 && r.Failed == 0 && len(r.Left) == 0
}

func (r result) String() string {
	verdict := "ok"
	if !r.isGood() {
		verdict = "FAIL"
	}
	line := fmt.Sprintf("%-4s  %-12s %5.0f s  CPU %5.0f s", verdict, r.Suite, r.Wall.Seconds(), r.CPU.Seconds())
	switch {
	case r.Tests > 0:
		line += fmt.Sprintf("  %d tests, %d failed, %d skipped", r.Tests, r.Failed, r.Skipped)
	case r.Status != 0:
		line += fmt.Sprintf("  no report, status %d", r.Status)
	}
	for _, left := range r.Left {
		line += "\n      it left a process behind: " + left
	}

	return line
}

// total sums what a run took.
func total(results []result) result {
	sum := result{Suite: "all"}
	for _, r := range results {
		sum.CPU += r.CPU
		sum.Tests += r.Tests
		sum.Failed += r.Failed
		sum.Skipped += r.Skipped
	}

	return sum
}

// reportOf is where a suite leaves its report.
func reportOf(suite string) string {
	return filepath.Join(out, suite+".xml")
}

// readReport reads the report of a suite. One that made none has an empty report.
func readReport(suite string) (reporters.JUnitTestSuites, error) {
	var report reporters.JUnitTestSuites
	raw, err := os.ReadFile(reportOf(suite))
	if errors.Is(err, fs.ErrNotExist) {
		return report, nil
	}
	if err == nil {
		err = xml.Unmarshal(raw, &report)
	}
	if err != nil {
		return report, fmt.Errorf("read the report of %s: %w", suite, err)
	}

	return report, nil
}

// counted returns the result with what the report of the suite says.
func (r result) counted(report reporters.JUnitTestSuites) result {
	for _, suite := range report.TestSuites {
		for i := range suite.TestCases {
			test := &suite.TestCases[i]
			r.Tests++
			switch {
			case test.Failure != nil, test.Error != nil:
				r.Failed++
			case test.Skipped != nil:
				r.Skipped++
			}
		}
	}

	return r
}

// lastRun is what the last run came to, as it is kept for suites times.
type lastRun struct {
	Cores   int           `json:"cores"`
	Wall    time.Duration `json:"wall"`
	Results []result      `json:"results"`
}

func lastRunFile() string { return filepath.Join(out, "suites.json") }

func (l lastRun) save() error {
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(lastRunFile(), append(raw, '\n'), 0o600)
}

func readLastRun() (lastRun, error) {
	var last lastRun
	raw, err := os.ReadFile(lastRunFile())
	if err != nil {
		return last, fmt.Errorf("read what the last run took; make test writes it: %w", err)
	}

	return last, json.Unmarshal(raw, &last)
}
