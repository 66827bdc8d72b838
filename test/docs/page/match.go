// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"regexp"
	"strings"
)

// A shape is something in the output of commands that is another each time.
type shape struct {
	pattern *regexp.Regexp
	is      string
}

// random are the characters of which Kubernetes makes random names and hashes: no
// vowels, and no digits that look like letters.
const random = `[bcdfghjklmnpqrstvwxz2456789]`

// shapes are replaced in this order, so each sees what the ones before have left.
var shapes = []shape{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "UID"},
	{regexp.MustCompile(`\bsha256:[0-9a-f]{64}\b`), "DIGEST"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| ?[+-]\d\d:?\d\d( [A-Z]+)?)?`), "TIME"},
	{regexp.MustCompile(`\b\d{1,3}(\.\d{1,3}){3}(:\d{4,5})?\b`), "IP"},
	{regexp.MustCompile(`\bnode-\d+\b`), "NODE"},
	// Of a revision or a ReplicaSet. No word of seven letters or more has no vowel.
	{regexp.MustCompile(`\b` + random + `{7,10}\b`), "HASH"},
	{regexp.MustCompile(`-` + random + `{5}\b`), "-RANDOM"},
	// An age: 34s, 2m30s, 3h, 5d12h. One with minutes only has two digits of them: 150m is an amount of CPU.
	{regexp.MustCompile(`\b(\d+d(\d+h)?|\d+h(\d+m)?(\d+s)?|\d{1,2}m(\d+s)?|\d+m\d+s|\d+(\.\d+)?s)\b`), "AGE"},
	// An event that came more often: 5s (x3 over 2m).
	{regexp.MustCompile(`\bAGE \(x\d+ over AGE\)`), "AGE"},
	// How often a pod was restarted. Now and then the kubelet does not say when it was.
	{regexp.MustCompile(`\b(\d+) \(AGE ago\)`), "$1"},
}

// Match says whether a command printed what a page shows. Both are compared line by
// line, without blank lines and the width of columns, and what has a shape is compared
// by that. In what is expected, "…" stands for anything within a line, and a line
// that is "…" or "..." for any number of lines.
func Match(expected, actual string) bool {
	return matchLines(lines(expected), lines(actual))
}

func matchLines(expected, actual []string) bool {
	for i, line := range expected {
		if line == "…" || line == "..." {
			rest := expected[i+1:]
			for skipped := i; skipped <= len(actual); skipped++ {
				if matchLines(rest, actual[skipped:]) {
					return true
				}
			}
			return false
		}
		if i >= len(actual) || !matchLine(line, actual[i]) {
			return false
		}
	}
	return len(expected) == len(actual)
}

func matchLine(expected, actual string) bool {
	if !strings.Contains(expected, "…") {
		return expected == actual
	}
	parts := strings.Split(expected, "…")
	for i := range parts {
		parts[i] = regexp.QuoteMeta(strings.TrimSpace(parts[i]))
	}
	return regexp.MustCompile(`^` + strings.Join(parts, ".*") + `$`).MatchString(actual)
}

// lines are those of an output that are not blank, by their shape.
func lines(output string) []string {
	var all []string
	for line := range strings.Lines(output) {
		line = strings.Join(strings.Fields(line), " ")
		if line == "" {
			continue
		}
		for _, shape := range shapes {
			line = shape.pattern.ReplaceAllString(line, shape.is)
		}
		all = append(all, line)
	}
	return all
}
