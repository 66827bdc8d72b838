// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// attempts tells how often the specs of a suite on real kubelets were tried. The machine
// can be the cause of one failure, hardly of two: a spec that passes at the second attempt
// has passed, and is named, so that a developer looks for the cause.
type attempts struct {
	// Specs is how many ran.
	Specs int `json:"specs,omitempty"`
	// Second names those that passed at the second attempt.
	Second []string `json:"second,omitempty"`
}

// specsOf is where ginkgo leaves what it knows of each spec of a suite.
func specsOf(suite string) string {
	return filepath.Join(out, suite+".json")
}

// readAttempts reads how often the specs of a suite were tried. A suite without specs on
// real kubelets has none.
func readAttempts(suite string) (attempts, error) {
	var tried attempts
	raw, err := os.ReadFile(specsOf(suite))
	if errors.Is(err, fs.ErrNotExist) {
		return tried, nil
	}
	var reports []types.Report
	if err == nil {
		err = json.Unmarshal(raw, &reports)
	}
	if err != nil {
		return tried, fmt.Errorf("read the specs of %s: %w", suite, err)
	}
	for i := range reports {
		for _, spec := range reports[i].SpecReports.WithLeafNodeType(types.NodeTypeIt) {
			if spec.NumAttempts > 0 {
				tried.Specs++
			}
			if spec.NumAttempts > 1 && spec.State.Is(types.SpecStatePassed) {
				tried.Second = append(tried.Second, spec.FullText())
			}
		}
	}

	return tried, nil
}

// parsePercentage reads a number from 0% to 100%.
func parsePercentage(text string) (int, error) {
	digits, found := strings.CutSuffix(text, "%")
	percentage, err := strconv.Atoi(digits)
	if !found || err != nil || percentage < 0 || percentage > 100 {
		return 0, fmt.Errorf("%q is no percentage; a percentage is 0%% to 100%%", text)
	}

	return percentage, nil
}

// checkAttempts names the specs that needed a second attempt, and reports whether they are
// at most so many percent of those that ran.
func checkAttempts(to io.Writer, results []result, limit int) bool {
	specs, second := 0, 0
	for _, r := range results {
		specs += r.Specs
		second += len(r.Second)
		for _, spec := range r.Second {
			fmt.Fprintf(to, "SECOND ATTEMPT %s: %s\n", r.Suite, spec)
		}
	}
	if second*100 <= limit*specs {
		return true
	}
	fmt.Fprintf(to, "%d of %d specs needed a second attempt: more than %d%%\n", second, specs, limit)

	return false
}
