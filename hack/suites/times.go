// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/insitu-dev/insitu/hack/marked"
)

// shown is how many of the slowest tests are listed.
const shown = 30

// slowTest is a test and how long it took.
type slowTest struct {
	suite, name string
	seconds     float64
}

// writeTimes lists the slowest tests of the last run, and writes its table into a page.
func writeTimes(to io.Writer, page string) error {
	last, err := readLastRun()
	if err != nil {
		return err
	}
	var tests []slowTest
	for _, r := range last.Results {
		report, err := readReport(r.Suite)
		if err != nil {
			return err
		}
		for _, suite := range report.TestSuites {
			for i := range suite.TestCases {
				tests = append(tests, slowTest{r.Suite, suite.TestCases[i].Name, suite.TestCases[i].Time})
			}
		}
	}
	table := tableOf(last)
	if _, err := fmt.Fprintf(to, "%s\n%s", table, slowest(tests)); err != nil {
		return err
	}

	return marked.ReplaceIn(page, "make test-times", table)
}

// tableOf is the table of a run.
func tableOf(last lastRun) string {
	var b strings.Builder
	b.WriteString("| Suite | Wall | CPU | Tests |\n|---|---|---|---|\n")
	for _, r := range last.Results {
		fmt.Fprintf(&b, "| %s | %.0f s | %.0f s | %d |\n", r.Suite, r.Wall.Seconds(), r.CPU.Seconds(), r.Tests)
	}
	sum := total(last.Results)
	fmt.Fprintf(&b, "| all, side by side on %d cores | %.0f s | %.0f s | %d |\n", last.Cores, last.Wall.Seconds(), sum.CPU.Seconds(), sum.Tests)

	return b.String()
}

// rowOf matches a row of the table of a run: suite and CPU time.
var rowOf = regexp.MustCompile(`(?m)^\| (\w+) \| \d+ s \| (\d+) s \| \d+ \|$`)

// forecast says how long the suites of make test will take here, by the table in
// CONTRIBUTING.md. Of other levels, nothing is known.
func forecast(wanted []string) string {
	page, err := os.ReadFile("CONTRIBUTING.md")
	if err != nil || os.Getenv("LEVEL") != "short" {
		return ""
	}
	var cpu time.Duration
	for _, row := range rowOf.FindAllStringSubmatch(string(page), -1) {
		if slices.Contains(wanted, row[1]) {
			seconds, _ := strconv.Atoi(row[2])
			cpu += time.Duration(seconds) * time.Second
		}
	}
	if cpu == 0 {
		return ""
	}
	return fmt.Sprintf("When everything is compiled, these suites take about %.0f minutes of CPU: %.0f minutes on two cores; here are %d\n",
		cpu.Minutes(), cpu.Minutes()/2, runtime.NumCPU())
}

// slowest lists the tests that took longest. A test that has subtests is listed with
// their time.
func slowest(tests []slowTest) string {
	slices.SortStableFunc(tests, func(a, b slowTest) int { return cmp.Compare(b.seconds, a.seconds) })
	var b strings.Builder
	fmt.Fprintf(&b, "The %d slowest tests:\n", min(shown, len(tests)))
	for _, test := range tests[:min(shown, len(tests))] {
		fmt.Fprintf(&b, "%7.1f s  %-10s %s\n", test.seconds, test.suite, test.name)
	}

	return b.String()
}
