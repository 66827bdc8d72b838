// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"strings"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// Plan writes what would come of a change: of each pod, or of many alike, of claims, who
// would refuse it, and the sum in the last line.
func Plan(w io.Writer, plan report.Plan, options Options) error {
	lines := []line{append(styled(faint, "Plan for "), span{bold, plan.Workload.String()}, span{faint, " in namespace " + plan.Workload.Namespace})}
	section := func(title string, body []line) {
		if len(body) > 0 {
			lines = append(append(lines, nil, styled(bold, title)), body...)
		}
	}
	section("Changes:", sentences(plain, plan.Changes, options))
	if len(plan.Pods) > 0 {
		lines = append(append(lines, nil), plannedPods(plan.Pods, options)...)
	}
	section("Claims:", plannedClaims(plan.Claims, options))
	section("Pulls:", triedPulls(plan.Pulls, options))
	section("Refused:", sentences(bad, plan.Refusals, options))
	section("Notes:", sentences(plain, plan.Notes, options))
	lines = append(append(lines, nil), wrap(styled(bold, planSum(plan)), options.Width, 0)...)
	return write(w, lines, options.Color)
}

// sentences returns texts, each wrapped and indented.
func sentences(style style, texts []string, options Options) []line {
	var lines []line
	for _, s := range texts {
		lines = append(lines, wrap(line{{plain, "  "}, {style, oneLine(s)}}, options.Width, indent)...)
	}
	return lines
}

// wayStyle returns how the word for a way looks.
func wayStyle(way report.Way) style {
	switch way {
	case report.Unchanged, report.Kept:
		return faint
	case report.InPlace:
		return good
	case report.Recreate:
		return busy
	case report.Refused:
		return bad
	default:
		return plain
	}
}

// fates are pods of which the same becomes.
type fates struct {
	report.PlannedPod
	names []string
}

// byFate puts together the pods of which the same becomes, in the order of the first.
func byFate(pods []report.PlannedPod) []fates {
	var groups []fates
	places := map[string]int{}
	for _, pod := range pods {
		key := fmt.Sprintf("%s\n%s\n%s\n%q\n%q\n%t\n%s\n%s", pod.Way, pod.Reason, sameWords(pod.Message, pod.Name, ""),
			pod.Restarts, pod.Resizes, pod.Drains, pod.Feasibility, sameWords(pod.FeasibilityMessage, pod.Name, ""))
		place, ok := places[key]
		if !ok {
			place = len(groups)
			places[key] = place
			groups = append(groups, fates{PlannedPod: pod})
		}
		groups[place].names = append(groups[place].names, pod.Name)
	}
	return groups
}

// plannedPods is a table with a row for each pod, or for many pods of which the same
// becomes, and below a row what there is to say in sentences.
func plannedPods(pods []report.PlannedPod, options Options) []line {
	t := table{head: []string{"POD", "WAY", "REASON", "RESTARTS", "DRAINED", "ROOM"}, expendable: []string{"DRAINED", "ROOM", "RESTARTS"}}
	for _, g := range byFate(pods) {
		if options.All {
			for _, name := range g.names {
				t.addFate(g, name, options)
			}
		} else {
			t.addFate(g, someOf(g.names), options)
		}
	}
	return t.lines(options.Width)
}

func (t *table) addFate(g fates, who string, options Options) {
	drained := ""
	if len(g.Restarts) > 0 && g.Way == report.InPlace {
		drained = "no"
		if g.Drains {
			drained = "yes"
		}
	}
	room := styled(good, string(g.Feasibility))
	if g.Feasibility != report.Fits {
		room = styled(busy, string(g.Feasibility))
	}
	t.add(text(who), styled(wayStyle(g.Way), string(g.Way)), text(g.Reason), text(strings.Join(g.Restarts, ", ")), text(drained), room)
	for _, s := range append([]string{g.Message, g.FeasibilityMessage}, g.Resizes...) {
		if s != "" {
			for _, l := range wrap(text("  "+oneLine(s)), options.Width, indent) {
				t.addFree(l)
			}
		}
	}
}

// someOf names pods: the first, and how many there are more.
func someOf(names []string) string {
	if len(names) <= named {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", names[0], len(names)-1)
}

func plannedClaims(claims []report.PlannedClaim, options Options) []line {
	var lines []line
	for _, claim := range claims {
		l := line{{plain, "  " + claim.Name + ": " + claim.Change}}
		if claim.Blocked {
			l = append(l, span{bad, list(" ", "  cannot:", claim.Reason)}, span{plain, "  " + oneLine(claim.Message)})
		} else if claim.Message != "" {
			l = append(l, span{plain, "  " + oneLine(claim.Message)})
		}
		lines = append(lines, wrap(l, options.Width, indent)...)
	}
	return lines
}

// triedPulls is a line for each pull that was tried.
func triedPulls(pulls []report.TriedPull, options Options) []line {
	var lines []line
	for _, pull := range pulls {
		l := line{{plain, fmt.Sprintf("  %s  %s  ", pull.Node, strings.Join(pull.Images, ", "))}}
		switch pull.Result {
		case report.OnNode:
			l = append(l, span{good, "on the node"})
		case report.NotTried:
			l = append(l, span{plain, "not tried: " + oneLine(pull.Message)})
		case report.Pulled:
			l = append(l, span{good, fmt.Sprintf("pulled in %.1f s", pull.Seconds)})
		default:
			l = append(l, span{bad, string(pull.Result)}, span{plain, "  " + oneLine(pull.Message)})
		}
		lines = append(lines, wrap(l, options.Width, indent)...)
	}
	return lines
}

// planSum counts the pods by their ways, and the claims that cannot follow.
func planSum(plan report.Plan) string {
	ways := map[report.Way]int{}
	for _, pod := range plan.Pods {
		ways[pod.Way]++
	}
	words := []string{count(ways[report.InPlace], "pod") + " in place", fmt.Sprintf("%d recreated", ways[report.Recreate])}
	for _, other := range []struct {
		way  report.Way
		word string
	}{{report.Refused, "refused"}, {report.Kept, "kept"}, {report.Unchanged, "unchanged"}} {
		if ways[other.way] > 0 {
			words = append(words, fmt.Sprintf("%d %s", ways[other.way], other.word))
		}
	}
	changed, blocked := 0, 0
	for _, claim := range plan.Claims {
		changed++
		if claim.Blocked {
			blocked++
		}
	}
	if changed > 0 {
		words = append(words, fmt.Sprintf("%d of %s changed", changed-blocked, count(changed, "claim")))
	}
	if len(plan.Changes) == 0 && len(plan.Refusals) == 0 && ways[report.InPlace]+ways[report.Recreate]+ways[report.Refused] == 0 {
		return "Nothing would change"
	}
	return strings.Join(words, ", ")
}
