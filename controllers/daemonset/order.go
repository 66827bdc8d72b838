// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// turn is a node whose pod is to be at the update revision, or is kept by the partition.
type turn struct {
	node   string
	labels map[string]string
	// runs: a pod is made on the node if there is none; one that is there stays in any case.
	runs bool
	// pod is the one that counts; nil if there is none.
	pod *corev1.Pod
	// surges: a pod at the update revision runs beside it.
	surges bool
}

// group orders turns, the earliest first.
type group int

const (
	isUpdated group = iota
	// isVacant: the next pod of the node is at the update revision in any case.
	isVacant
	isOld
)

func (t turn) group(mark string) group {
	switch {
	case t.pod != nil && t.pod.DeletionTimestamp == nil && inplace.RevisionOf(t.pod) == mark:
		return isUpdated
	case t.pod == nil, t.pod.DeletionTimestamp != nil, t.pod.Labels[appsv1beta1.LifecycleStateKey] == string(appsv1beta1.LifecycleStatePreparingDelete):
		return isVacant
	default:
		return isOld
	}
}

// order returns the group by which a turn comes: a surge that has begun counts as an update.
func (t turn) order(mark string) group {
	if t.surges {
		return isUpdated
	}
	return t.group(mark)
}

// inUpdateOrder returns the turns in the order of updates, and how many of them come before the
// partition keeps the others. Those that are updated, or are so with their next pod, count first,
// in whatever way the partition and the labels have changed since. Then come the nodes that
// selector selects, those with the highest names first.
func inUpdateOrder(turns []turn, mark string, selector labels.Selector, partition int) (ordered []turn, released int) {
	ordered = slices.SortedFunc(slices.Values(turns), func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.order(mark), b.order(mark)), cmp.Compare(rank(b, selector), rank(a, selector)), cmp.Compare(b.node, a.node))
	})
	selected := 0
	for _, t := range ordered {
		if t.order(mark) != isOld || rank(t, selector) > 0 {
			selected++
		}
	}
	return ordered, max(min(len(turns)-partition, selected), 0)
}

// rank is 1 for a node whose labels are selected, and 0 for another one.
func rank(t turn, selector labels.Selector) int {
	if selector.Matches(labels.Set(t.labels)) {
		return 1
	}
	return 0
}
