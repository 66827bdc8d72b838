// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/inplace"
)

const (
	// foldAbove is how many pods a workload has before pods are summed up.
	foldAbove = 20
	// examples is how many pods on their way for the same reason are shown then.
	examples = 3
)

// class is the pods of a revision that are at the same step for the same reason.
type class struct {
	state, reason string
	shown         []report.Pod
	folded        folded
}

// folded is what is told of pods that are summed up.
type folded struct {
	pods, ready, restarts, sinceUpdate int
	state, reason                      string
	isRest                             bool
}

// fold groups pods, and says which of them are shown: all of a small workload; of a
// large one a few examples of those on their way, and none of those that have arrived
// or wait for their turn. The order of the pods is kept.
func fold(w report.Workload, pods []report.Pod, options Options) []class {
	if options.showsEach(w) {
		return []class{{shown: pods}}
	}
	var classes []class
	places := map[[2]string]int{}
	for _, pod := range pods {
		key := [2]string{pod.State, whyToldOf(pod)}
		place, ok := places[key]
		if !ok {
			place = len(classes)
			places[key] = place
			classes = append(classes, class{state: key[0], reason: key[1]})
		}
		classes[place].take(pod)
	}
	return classes
}

// whyToldOf returns the reason of a pod, or else that of one of its claims.
func whyToldOf(pod report.Pod) string {
	reason := reasonOf(pod)
	for _, claim := range pod.Claims {
		reason = cmp.Or(reason, claim.Reason)
	}
	return reason
}

// take adds a pod to its class.
func (c *class) take(pod report.Pod) {
	isQuiet := c.state == string(inplace.Settled) && c.reason == reasonOf(pod) || c.state == string(inplace.Waiting)
	if !isQuiet && len(c.shown) < examples {
		c.shown = append(c.shown, pod)
		return
	}
	c.folded.state, c.folded.reason, c.folded.isRest = c.state, c.reason, !isQuiet
	c.folded.pods++
	if pod.Ready {
		c.folded.ready++
	}
	c.folded.restarts += int(pod.Restarts)
	c.folded.sinceUpdate += int(pod.RestartsSinceUpdate)
}

func (f folded) node() node {
	name := count(f.pods, "pod")
	if f.isRest {
		name = fmt.Sprintf("… and %d more", f.pods)
	}
	return node{name: text(name), cells: []line{
		styled(stateStyle(f.state), f.state), text(f.reason), text(fmt.Sprintf("%d/%d", f.ready, f.pods)), text(restarts(f.restarts, f.sinceUpdate)),
	}}
}
