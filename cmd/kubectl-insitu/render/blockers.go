// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

const (
	// named is how many pods that wait for the same are named one by one.
	named = 3
	// indent is that of the second line of what is told in one, where the terminal is
	// narrower than that.
	indent = 4
)

// blockerGroup is what pods wait for: the first blocker stands for all.
type blockerGroup struct {
	report.Blocker
	pods []string
}

// varying is what differs in messages that say the same of several pods: times, spans of
// time, UIDs.
var varying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z|\b(\d+(h|m|s|ms))+\b|\b[0-9a-f]{8}-[0-9a-f-]{27}\b`)

// groupBlockers puts together the blockers that say the same of several pods, in the
// order of the first of each.
func groupBlockers(w report.Workload) []blockerGroup {
	nodes := map[string]string{}
	for _, pod := range w.Pods {
		nodes[pod.Name] = pod.Node
	}
	var groups []blockerGroup
	places := map[[3]string]int{}
	for _, b := range w.Blockers {
		if b.Pod == "" && w.Phase == report.Unknown {
			continue // see unseen
		}
		key := [3]string{b.Step, b.Reason, sameWords(b.Message, b.Pod, nodes[b.Pod])}
		place, ok := places[key]
		if !ok {
			place = len(groups)
			places[key] = place
			groups = append(groups, blockerGroup{Blocker: b})
		}
		groups[place].add(b)
	}
	return groups
}

// add adds a blocker, which says the same as the first.
func (g *blockerGroup) add(b report.Blocker) {
	if b.Pod != "" {
		g.pods = append(g.pods, b.Pod)
	}
	if !b.Since.IsZero() && (g.Since.IsZero() || b.Since.Before(&g.Since)) {
		g.Since = b.Since
	}
	g.NeedsHelp = g.NeedsHelp || b.NeedsHelp
}

// sameWords returns a message without what differs from pod to pod.
func sameWords(message, pod, node string) string {
	for _, name := range []string{pod, node} {
		if name != "" {
			message = strings.ReplaceAll(message, name, "*")
		}
	}
	return varying.ReplaceAllString(message, "*")
}

// who names those who wait.
func (g *blockerGroup) who() string {
	switch {
	case len(g.pods) == 0:
		return "workload"
	case len(g.pods) == 1:
		return "pod " + g.pods[0]
	case len(g.pods) <= named:
		return "pods " + strings.Join(g.pods, ", ")
	default:
		return fmt.Sprintf("%d pods (%s, …)", len(g.pods), strings.Join(g.pods[:named], ", "))
	}
}

// blockerLines says of each blocker who waits, for what, since when, and, where advises
// says so, what to do. Each is one line, which is wrapped where the terminal is narrower.
func blockerLines(w report.Workload, options Options, advises func(report.Blocker) bool) []line {
	var lines []line
	for _, g := range groupBlockers(w) {
		reasonStyle := plain
		if g.NeedsHelp {
			reasonStyle = bad
		}
		label := line{{bold, g.who()}, {plain, "  "}}
		if g.Step != "" {
			label = append(label, span{stateStyle(g.Step), g.Step}, span{plain, "  "})
		}
		label = append(label, span{reasonStyle, g.Reason}, span{plain, "  "})
		rest := oneLine(g.Message)
		if since := age(g.Since.Time, options.Now); since != "" {
			rest = list("  ", "since "+since, rest)
		}
		advice := ""
		if advises(g.Blocker) {
			advice = g.Advice
		}
		lines = append(lines, advised(append(label, span{plain, rest}), advice, options.Width)...)
	}
	return lines
}

// advised adds advice to a line, or below it where the terminal is narrower than both.
func advised(l line, advice string, width int) []line {
	if advice == "" {
		return wrap(l, width, indent)
	}
	const arrow = "-> "
	said := append(text(arrow), withCommands(advice)...)
	if both := append(append(slices.Clip(l), span{plain, "  "}), said...); width <= 0 || both.width() <= width {
		return []line{both}
	}
	below := append(text(strings.Repeat(" ", indent)), said...)
	return append(wrap(l, width, indent), wrap(below, width, indent+len(arrow))...)
}

// withCommands sets off the commands in advice, which are in backticks.
func withCommands(advice string) line {
	var l line
	for i, part := range strings.Split(advice, "`") {
		if i%2 == 0 {
			l = append(l, span{plain, part})
		} else {
			l = append(l, span{calm, part})
		}
	}
	return l
}
