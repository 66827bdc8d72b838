// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/onsi/ginkgo/v2/reporters"
)

// A long log is often shown by its end alone. So a run ends with what failed, in short.
const (
	shownFailures = 8
	// shownLines of a message are shown: half of them are its first, half its last.
	shownLines = 8
	shownWidth = 200
)

// failure is a test that failed, and the lines that say why.
type failure struct {
	suite, test string
	lines       []string
}

// failuresIn returns the failed tests of a report.
func failuresIn(suite string, report reporters.JUnitTestSuites) []failure {
	var found []failure
	for _, tests := range report.TestSuites {
		for i := range tests.TestCases {
			test := &tests.TestCases[i]
			if text, failed := messageOf(test); failed {
				found = append(found, failure{suite, test.Classname + ": " + test.Name, shortened(text)})
			}
		}
	}

	return found
}

// messageOf says why a test failed. Ginkgo has a message; that of gotestsum says nothing,
// and its content is all that the test printed: from where it names a line of the test on.
func messageOf(test *reporters.JUnitTestCase) (text string, failed bool) {
	switch {
	case test.Error != nil:
		return test.Error.Message, true
	case test.Failure == nil:
		return "", false
	case test.Failure.Message != "" && test.Failure.Message != "Failed":
		return test.Failure.Message, true
	default:
		printed := test.Failure.Description
		if at := strings.Index(printed, "_test.go:"); at >= 0 {
			printed = printed[strings.LastIndex(printed[:at], "\n")+1:]
		}

		return printed, true
	}
}

// shortened returns the first and the last lines of a text.
func shortened(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if line == "" || strings.HasPrefix(line, "=== ") {
			continue
		}
		if runes := []rune(line); len(runes) > shownWidth {
			line = string(runes[:shownWidth]) + " ..."
		}
		lines = append(lines, line)
	}
	if cut := len(lines) - shownLines; cut > 0 {
		half := shownLines / 2
		middle := fmt.Sprintf("... %d more ...", cut)
		lines = append(append(lines[:half:half], middle), lines[len(lines)-half:]...)
	}

	return lines
}

// printFailures prints what failed, and where to read all that the suite printed.
func printFailures(to io.Writer, failures []failure) {
	for _, f := range failures[:min(shownFailures, len(failures))] {
		fmt.Fprintf(to, "\nFAILED %s: %s\n", f.suite, f.test)
		for _, line := range f.lines {
			fmt.Fprintf(to, "    %s\n", line)
		}
	}
	if more := len(failures) - shownFailures; more > 0 {
		fmt.Fprintf(to, "\n%d more tests failed: see %s/*.log\n", more, out)
	}
}
