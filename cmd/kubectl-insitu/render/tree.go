// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// Tree writes where a workload is: its phase and counts, its revisions with their pods,
// and what it waits for.
func Tree(w io.Writer, workload report.Workload, options Options) error {
	lines := treeOf(workload, options).all()
	return write(w, lines, options.Color)
}

func write(w io.Writer, lines []line, color bool) error {
	b := strings.Builder{}
	for _, l := range lines {
		b.WriteString(l.show(color) + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sections are the parts of what is shown of a workload.
type sections struct {
	header, tree, blockers []line
}

func (s sections) all() []line {
	lines := slices.Concat(s.header, []line{nil}, s.tree)
	if len(s.blockers) > 0 {
		lines = slices.Concat(lines, []line{nil}, s.blockers)
	}
	return lines
}

func treeOf(workload report.Workload, options Options) sections {
	s := sections{header: header(workload, options), tree: pods(workload, options)}
	var blockers []line
	if workload.Phase == report.Unknown {
		blockers = unseen(workload, options)
	}
	blockers = append(blockers, blockerLines(workload, options, func(b report.Blocker) bool { return b.NeedsHelp || b.Pod == "" })...)
	if len(blockers) > 0 {
		s.blockers = append([]line{styled(bold, "Waits for:")}, blockers...)
	}
	return s
}

// labelWidth is that of the labels in the header.
const labelWidth = len("Updated by:") + 1

// header says of a workload what holds for all of it.
func header(w report.Workload, options Options) []line {
	var lines []line
	say := func(label, s string) {
		if s != "" {
			l := append(styled(faint, fmt.Sprintf("%-*s", labelWidth, label+":")), span{plain, oneLine(s)})
			lines = append(lines, wrap(l, options.Width, labelWidth)...)
		}
	}
	say("Name", w.Ref.String())
	say("Namespace", w.Namespace)
	lines = append(lines, phaseLine(w).cut(options.Width))
	say("Message", w.Message)
	say("Policy", list(", ", w.Policy, when(w.MaxUnavailable > 0, "at most "+count(int(w.MaxUnavailable), "pod")+" unavailable")))
	say("Updated by", when(w.Driver == report.Kubernetes, "Kubernetes: the workload has no label insitu.dev/update-policy"))
	say("Rollout", list(", ", when(w.Paused, "paused"), when(w.Partition != "", "partition "+w.Partition), when(w.Held, "held for the update")))
	say("Pods", fmt.Sprintf("%d wanted, %d updated, %d ready, %d available", w.Replicas, w.Updated, w.Ready, w.Available))
	say("Updates", fmt.Sprintf("%d in place, %d as new pods", w.InPlace, w.Recreated))
	say("Keeps", kept(w, options))
	return lines
}

// kept says what is kept of recreated claims; "" if nothing is.
func kept(w report.Workload, options Options) string {
	k := w.Kept
	if k == nil {
		return ""
	}
	volumes := when(k.Volumes > 0, fmt.Sprintf("%s with %s", count(int(k.Volumes), "volume"), k.Capacity))
	snapshots := when(k.Snapshots > 0, count(int(k.Snapshots), "snapshot"))
	said := list(" and ", volumes, snapshots) + " of recreated claims"
	if k.OldestTimestamp != nil {
		said += ", the oldest for " + age(k.OldestTimestamp.Time, options.Now)
	}
	return list(", ", said, when(k.Overdue > 0, fmt.Sprintf("%d overdue", k.Overdue))) + ": kubectl insitu volumes -n " + w.Namespace
}

func phaseLine(w report.Workload) line {
	l := append(styled(faint, fmt.Sprintf("%-*s", labelWidth, "Phase:")), span{phaseStyle(w.Phase), string(w.Phase)})
	if w.Reason != "" && w.Reason != string(w.Phase) {
		l = append(l, span{plain, " (" + w.Reason + ")"})
	}
	return l
}

// pods returns the tree from the workload down to containers and claims.
func pods(w report.Workload, options Options) []line {
	t := table{
		head:       []string{"NAME", "STATE", "REASON", "READY", "RESTARTS", "AGE", "NODE"},
		expendable: []string{"NODE", "AGE", "RESTARTS", "REASON"},
	}
	root := node{name: styled(bold, w.Name), cells: []line{
		styled(phaseStyle(w.Phase), string(w.Phase)), nil, text(fmt.Sprintf("%d/%d", w.Ready, w.Replicas)), nil,
		text(age(w.CreationTimestamp.Time, options.Now)),
	}}
	for _, group := range byRevision(w) {
		root.children = append(root.children, group.node(w, options))
	}
	t.addTree(root)
	return t.lines(options.Width)
}

// revisionGroup is a revision and the pods that have it.
type revisionGroup struct {
	name   string
	images []string
	pods   []report.Pod
}

// byRevision groups the pods of a workload: those of its revisions, then those between
// two, and of revisions that are not in the history.
func byRevision(w report.Workload) []revisionGroup {
	var groups []revisionGroup
	places := map[string]int{}
	for _, revision := range w.Revisions {
		places[revision.Name] = len(groups)
		groups = append(groups, revisionGroup{name: revisionName(revision), images: revision.Images})
	}
	for _, pod := range w.Pods {
		place, ok := places[pod.Revision]
		if !ok {
			place = len(groups)
			places[pod.Revision] = place
			name := "revision " + pod.Revision + ", not in the history"
			if pod.Revision == "" {
				name = "between two revisions"
			}
			groups = append(groups, revisionGroup{name: name})
		}
		groups[place].pods = append(groups[place].pods, pod)
	}
	return groups
}

func revisionName(r report.Revision) string {
	name := "revision " + r.Name
	if r.Number > 0 {
		name = fmt.Sprintf("revision %d", r.Number)
	}
	return list(", ", name, when(r.IsUpdate, "update"), when(r.IsCurrent && !r.IsUpdate, "current"))
}

func (g revisionGroup) node(w report.Workload, options Options) node {
	label := g.name + " · " + count(len(g.pods), "pod")
	name := append(styled(bold, g.name), span{plain, label[len(g.name):]})
	if len(g.images) > 0 {
		name = append(name, span{plain, " · " + shortenImages(g.images, columns(options)-depth/3-text(label+" · ").width())})
	}
	n := node{name: name}
	for _, class := range fold(w, g.pods, options) {
		for _, pod := range class.shown {
			n.children = append(n.children, podNode(pod, options.showsEach(w), options))
		}
		if class.folded.pods > 0 {
			n.children = append(n.children, class.folded.node())
		}
	}
	return n
}

// shortenImages names images in so many columns: their ends tell them apart.
func shortenImages(images []string, width int) string {
	if joined := strings.Join(images, ", "); len(joined) <= width {
		return joined
	}
	short := make([]string, 0, len(images))
	for _, image := range images {
		short = append(short, shortenLeft(image, width/len(images)-len(", ")))
	}
	return strings.Join(short, ", ")
}
