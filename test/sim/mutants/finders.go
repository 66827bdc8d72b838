// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// findersFile says which test found a bug when it was planted last.
const findersFile = "test/sim/mutants/finders.json"

// finder is the test that finds a bug. It is tried first: what found a bug once finds it in
// seconds, and all tests of its family take a minute.
type finder struct {
	Test string `json:"test"`
	// Seed is that of the random run that found it, where Test has such.
	Seed *int `json:"seed,omitempty"`
}

// readFinders reads what was recorded, by the names of bugs.
func readFinders() (map[string]finder, error) {
	finders := map[string]finder{}
	text, err := os.ReadFile(findersFile)
	if errors.Is(err, fs.ErrNotExist) {
		return finders, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &finders); err != nil {
		return nil, fmt.Errorf("read %s: %w", findersFile, err)
	}
	return finders, nil
}

// writeFinders records what found the bugs.
func writeFinders(finders map[string]finder) error {
	text, err := json.MarshalIndent(finders, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(findersFile, append(text, '\n'), 0o644) //nolint:gosec // a file of this repository
}

var (
	failedTest = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	failedSeed = regexp.MustCompile(`(?m)^\s+\S+_test\.go:\d+: seed-(\d+): `)
)

// finderIn returns the test that failed first in what tests printed; nil if none is named.
func finderIn(output string) *finder {
	first := ""
	for _, match := range failedTest.FindAllStringSubmatch(output, -1) {
		if first != "" && !strings.HasPrefix(match[1], first+"/") {
			break
		}
		first = match[1]
	}
	if first == "" {
		return nil
	}
	found := &finder{Test: first}
	if match := failedSeed.FindStringSubmatch(output); match != nil && strings.HasSuffix(first, "Seeds") {
		seed, err := strconv.Atoi(match[1])
		if err != nil {
			return nil
		}
		found.Seed = &seed
	}
	return found
}

// arguments narrows those of "go test" to the finder.
func (f finder) arguments(all []string) []string {
	parts := strings.Split(f.Test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	arguments := slices.Clone(all)
	if i := slices.Index(arguments, "-run"); i >= 0 {
		arguments = slices.Delete(arguments, i, i+2)
	}
	arguments = append([]string{"-run", strings.Join(parts, "/")}, arguments...)
	if f.Seed == nil {
		return arguments
	}
	for i, argument := range arguments {
		if strings.HasSuffix(argument, "seeds") {
			arguments[i+1] = "1"
		}
	}
	return append(arguments, "-first-seed", strconv.Itoa(*f.Seed))
}
