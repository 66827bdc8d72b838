// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
)

// Why writes what blocks a workload, since when and what to do about it: a line for each
// blocker, the worst first. Where nothing does, it says what the workload is doing.
func Why(w io.Writer, workload report.Workload, options Options) error {
	lines := blockerLines(workload, options, func(report.Blocker) bool { return true })
	switch {
	case workload.Phase == report.Unknown:
		lines = append(unseen(workload, options), lines...)
	case len(lines) == 0:
		lines = unblocked(workload, options)
	}
	return write(w, lines, options.Color)
}

// unseen says that the operator is behind, and how to look at it.
func unseen(w report.Workload, options Options) []line {
	said := list(": ", "The operator has not seen the present generation of "+w.Ref.String(), oneLine(w.Message))
	return advised(text(said), report.AdviceOnOperator, options.Width)
}

// unblocked says what a workload does that waits for nothing.
func unblocked(w report.Workload, options Options) []line {
	updated := fmt.Sprintf("%d of %s updated", w.Updated, count(int(w.Replicas), "pod"))
	var said, advice string
	switch {
	case w.Driver == report.Kubernetes:
		said = "Kubernetes updates the pods, not Insitu: the workload has no label insitu.dev/update-policy"
	case w.Phase == report.Healthy:
		said = fmt.Sprintf("Nothing blocks: %s as wanted and available", isAre(int(w.Replicas), "pod"))
	case w.Phase == report.Progressing:
		said = list(": ", "Nothing blocks, the rollout is on its way", list(", ", updated, atSteps(w.Pods)))
	default:
		said = string(w.Phase) + ": " + cmp.Or(oneLine(w.Message), updated)
		advice = report.AdviceOn(w.Reason, w.Ref, "", "")
	}
	return advised(text(said), advice, options.Width)
}

// isAre says how many things are: 1 pod is, 2 pods are.
func isAre(n int, thing string) string {
	if n == 1 {
		return count(n, thing) + " is"
	}
	return count(n, thing) + " are"
}

// atSteps counts the pods that are on their way, by where they are.
func atSteps(pods []report.Pod) string {
	counts := map[string]int{}
	for _, pod := range pods {
		if pod.State != string(inplace.Settled) {
			counts[pod.State]++
		}
	}
	var words []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		words = append(words, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(words, ", ")
}
