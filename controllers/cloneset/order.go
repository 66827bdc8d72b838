// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// rank says how far a pod is from serving. The lowest is updated first: nothing
// is lost with it.
type rank int

const (
	unscheduled rank = iota
	pending
	unready
	ready
)

func rankOf(pod *corev1.Pod) rank {
	switch {
	case pod.Spec.NodeName == "":
		return unscheduled
	case pod.Status.Phase == corev1.PodPending:
		return pending
	case !podutils.IsPodReady(pod):
		return unready
	default:
		return ready
	}
}

// place is where a pod is in the order of updates. Pods at one place are alike.
type place struct {
	rank     rank
	priority inplace.Priority
}

func (p place) compare(other place) int {
	return cmp.Or(cmp.Compare(p.rank, other.rank), p.priority.Compare(other.priority))
}

// inUpdateOrder returns pods in the order in which their updates start: those
// that do not serve first, then by priority. Of pods at one place, those that a
// scatter term names are spread among the others, which are ordered by name.
func inUpdateOrder(pods []*member, strategy *appsv1beta1.UpdatePriorityStrategy, terms []appsv1beta1.CloneSetUpdateScatterTerm) []*member {
	priorityOf := inplace.Priorities(strategy)
	places := make(map[*member]place, len(pods))
	for _, m := range pods {
		places[m] = place{rankOf(m.Pod), priorityOf(m.Labels)}
	}
	ordered := slices.SortedFunc(slices.Values(pods), func(a, b *member) int {
		return cmp.Or(places[a].compare(places[b]), cmp.Compare(a.Name, b.Name))
	})
	for start := 0; start < len(ordered); {
		end := start + 1
		for end < len(ordered) && places[ordered[start]].compare(places[ordered[end]]) == 0 {
			end++
		}
		scatterAll(ordered[start:end], terms)
		start = end
	}
	return ordered
}

// scatterAll spreads the pods of each term, one term after the other.
func scatterAll(pods []*member, terms []appsv1beta1.CloneSetUpdateScatterTerm) {
	for _, term := range terms {
		selector := labels.SelectorFromSet(labels.Set{term.Key: term.Value})
		named := make([]bool, len(pods))
		for i, m := range pods {
			named[i] = selector.Matches(labels.Set(m.Labels))
		}
		scatter(pods, named)
	}
}

// scatter spreads the named items evenly over a list: of n items, the i-th of m
// named ones comes to n*i/m. Otherwise the order stays.
func scatter[T any](items []T, named []bool) {
	var spread, others []T
	for i, item := range items {
		if named[i] {
			spread = append(spread, item)
		} else {
			others = append(others, item)
		}
	}
	n, m := len(items), len(spread)
	next := 0
	for i := range items {
		if next < m && i == n*next/m {
			items[i] = spread[next]
			next++
		} else {
			items[i] = others[i-next]
		}
	}
}
