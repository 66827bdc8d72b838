// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
)

// Lines writes what has changed between two reports: a line for each change, with the
// time before it.
func Lines(w io.Writer, before, after report.Workload, options Options) error {
	b := strings.Builder{}
	for _, change := range Diff(before, after) {
		b.WriteString(options.Now.UTC().Format(time.RFC3339) + "  " + change + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Diff says what has changed between two reports, each change in a line: of the workload
// first, then of its pods and their claims. Before the first report, when before is the
// zero Workload, it says where the workload is and which pods are not at rest.
func Diff(before, after report.Workload) []string {
	lines := diffWorkload(before, after)
	known := map[string]report.Pod{}
	for _, pod := range before.Pods {
		known[pod.Name] = pod
	}
	for _, pod := range after.Pods {
		old, existed := known[pod.Name]
		delete(known, pod.Name)
		lines = append(lines, diffPod(old, pod, existed, before.Name == "")...)
	}
	for _, pod := range before.Pods {
		if _, isGone := known[pod.Name]; isGone {
			lines = append(lines, list("  ", "pod "+pod.Name, pod.State+" -> gone"))
		}
	}
	return lines
}

func diffWorkload(before, after report.Workload) []string {
	var lines []string
	say := func(words ...string) {
		lines = append(lines, list("  ", append([]string{after.Ref.String()}, words...)...))
	}
	if was, is := updateOf(before), updateOf(after); was != is && before.Name != "" {
		say(was + " -> " + is)
	}
	if before.Paused != after.Paused && before.Name != "" {
		say(when(after.Paused, "paused") + when(!after.Paused, "resumed"))
	}
	if before.Partition != after.Partition && before.Name != "" {
		say(fmt.Sprintf("partition %s -> %s", orNone(before.Partition), orNone(after.Partition)))
	}
	if before.Phase != after.Phase || before.Reason != after.Reason {
		say(move(string(before.Phase), string(after.Phase)), unlessSame(after.Reason, string(after.Phase)), oneLine(after.Message))
	}
	if before.Updated != after.Updated || before.Replicas != after.Replicas || before.Phase != after.Phase {
		say(fmt.Sprintf("%d of %s updated, %d available", after.Updated, count(int(after.Replicas), "pod"), after.Available))
	}
	return lines
}

// diffPod says what has changed of a pod. Of those that are there at first, only those
// that are not at rest are told of.
func diffPod(old, pod report.Pod, existed, isFirst bool) []string {
	name := "pod " + pod.Name
	var lines []string
	switch {
	case isFirst && pod.State == string(inplace.Settled) && pod.Reason == "":
		return nil
	case isFirst:
		lines = []string{list("  ", name, pod.State, pod.Reason, oneLine(pod.Message))}
	case !existed:
		lines = []string{list("  ", name, "new -> "+pod.State, pod.Reason, oneLine(pod.Message))}
	case old.UID != pod.UID:
		lines = []string{list("  ", name, old.State+" -> recreated, "+pod.State, pod.Reason, oneLine(pod.Message))}
	case old.State != pod.State || old.Reason != pod.Reason:
		lines = []string{list("  ", name, move(old.State, pod.State), pod.Reason, oneLine(pod.Message))}
	}
	return append(lines, diffClaims(name, old.Claims, pod.Claims)...)
}

// diffClaims says what has changed of the claims of a pod.
func diffClaims(pod string, before, after []report.Claim) []string {
	known := map[string]report.Claim{}
	for _, claim := range before {
		known[claim.Name] = claim
	}
	var lines []string
	for _, claim := range after {
		old, existed := known[claim.Name]
		if existed && (old.Capacity != claim.Capacity || old.Phase != claim.Phase || old.Reason != claim.Reason) {
			lines = append(lines, list("  ", pod, "claim "+claim.Name, move(state(old), state(claim)), claim.Reason, oneLine(claim.Message)))
		}
	}
	return lines
}

// state says in short what a claim is.
func state(claim report.Claim) string {
	return list(" ", claim.Phase, claim.Capacity)
}

// updateOf names the revision that pods are to get to.
func updateOf(w report.Workload) string {
	for _, revision := range w.Revisions {
		if revision.IsUpdate {
			revision.IsUpdate, revision.IsCurrent = false, false
			return revisionName(revision)
		}
	}
	return "no revision"
}

// move says from where to where: only the latter if there is no former, or no difference.
func move(from, to string) string {
	if from == "" || from == to {
		return to
	}
	return from + " -> " + to
}

func unlessSame(word, other string) string {
	return when(word != other, word)
}

func orNone(word string) string {
	if word == "" {
		return "none"
	}
	return word
}
