// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

const (
	// running is the state of a container of which nothing is to be told.
	running = "Running"
	// depth is how many columns of the tree come before a container.
	depth = 9
)

// podNode shows a pod. quietClaims also shows claims of which there is nothing to be told.
func podNode(pod report.Pod, quietClaims bool, options Options) node {
	ready := styled(bad, "no")
	if pod.Ready {
		ready = text("yes")
	}
	n := node{name: text(pod.Name), cells: []line{
		styled(stateStyle(pod.State), pod.State),
		text(reasonOf(pod)),
		ready,
		text(restarts(int(pod.Restarts), int(pod.RestartsSinceUpdate))),
		text(age(pod.CreationTimestamp.Time, options.Now)),
		text(pod.Node),
	}}
	for _, container := range pod.Containers {
		if told := containerLine(container, columns(options)-depth); told != "" {
			n.children = append(n.children, node{name: text(told)})
		}
	}
	n.children = append(n.children, claimNodes(pod.Claims, quietClaims)...)
	return n
}

// reasonOf returns why a pod is where it is.
func reasonOf(pod report.Pod) string {
	return cmp.Or(pod.Reason, when(pod.Kept, "Kept"))
}

// restarts says how often containers were restarted, and how often of that since the
// last update.
func restarts(all, sinceUpdate int) string {
	if sinceUpdate == 0 {
		return fmt.Sprint(all)
	}
	return fmt.Sprintf("%d (%d new)", all, sinceUpdate)
}

// containerLine says what is to be told of a container; "" if there is nothing.
func containerLine(c report.Container, width int) string {
	state := c.State
	switch {
	case c.State == running && c.Ready:
		state = ""
	case c.State == running:
		state = "running, not ready"
	}
	resources := resourcesLine(c)
	name := when(c.Sidecar, "sidecar ") + c.Name + ": "
	image := imageLine(c, width-len(list("; ", name+state, "image  -> ", resources)))
	told := list("; ", state, image, resources)
	if told == "" {
		return ""
	}
	return name + told
}

// imageLine says which image a container has and is to have, in about so many columns.
// What tells them apart is the end, mostly.
func imageLine(c report.Container, width int) string {
	if c.WantedImage == "" {
		return ""
	}
	from, to := path.Base(c.Image), path.Base(c.WantedImage)
	if from == to {
		from, to = c.Image, c.WantedImage
	}
	if len(from)+len(to) > width {
		from, to = shortenLeft(from, width/2), shortenLeft(to, width/2)
	}
	return "image " + from + " -> " + to
}

// resourcesLine says which amounts of a container are not what its template says.
func resourcesLine(c report.Container) string {
	if c.WantedResources == nil {
		return ""
	}
	return list(", ",
		amounts("requests", c.Resources.Requests, c.WantedResources.Requests),
		amounts("limits", c.Resources.Limits, c.WantedResources.Limits))
}

// amounts says which of the wanted amounts differ. What a template leaves out may be
// there nevertheless.
func amounts(field string, actual, wanted corev1.ResourceList) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if quantity := actual[name]; quantity.Cmp(wanted[name]) != 0 {
			words = append(words, fmt.Sprintf("%s.%s %s -> %s", field, name, amount(actual, name), amount(wanted, name)))
		}
	}
	return strings.Join(words, ", ")
}

func amount(list corev1.ResourceList, name corev1.ResourceName) string {
	quantity, ok := list[name]
	if !ok {
		return "none"
	}
	return quantity.String()
}

// claimNodes shows claims: each of which something is to be told on a line of its own,
// the others, if they are shown at all, on one line.
func claimNodes(claims []report.Claim, quiet bool) []node {
	var nodes []node
	var fine []string
	for _, claim := range claims {
		if told := claimLine(claim); told != "" {
			nodes = append(nodes, node{name: text("claim " + claim.Name + ": " + told)})
		} else {
			fine = append(fine, list(" ", claim.Name, claim.Capacity))
		}
	}
	if quiet && len(fine) > 0 {
		label := "claims "
		if len(fine) == 1 {
			label = "claim "
		}
		nodes = append(nodes, node{name: styled(faint, label+strings.Join(fine, ", "))})
	}
	return nodes
}

// claimLine says what is to be told of a claim; "" if there is nothing.
func claimLine(c report.Claim) string {
	asks := when(c.Requested != c.Capacity && c.Requested != "", "asks for "+c.Requested)
	wants := when(c.Wanted != "" && c.Wanted != c.Requested, "is to have "+c.Wanted)
	phase := when(c.Phase != string(corev1.ClaimBound), c.Phase)
	if list("", asks, wants, phase, c.Reason) == "" {
		return ""
	}
	return list(", ", c.Capacity, asks, wants, phase, c.Reason)
}
