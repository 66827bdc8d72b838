// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/inplace"
)

// Turn is how early a wanted pod may be updated where the partition is a number of
// pods.
type Turn int

// The turns, the earliest first.
const (
	// Updated: the pod is at the update revision, and stays there.
	Updated Turn = iota
	// Displaced: the pod has left the current revision, and cannot stay old.
	Displaced
	// Begun: the pod is being taken out of service for the update.
	Begun
	// Vacant: a pod is to be made in any case.
	Vacant
	// Resting: the pod runs the current revision.
	Resting
	// Lost: the pod cannot be replaced by us.
	Lost
)

// TurnOf returns the turn of a pod on the way from the current revision to the
// update revision, which are not the same.
func TurnOf(pod *corev1.Pod, update, current string, now time.Time) Turn {
	revision := inplace.RevisionOf(pod)
	switch {
	case revision == update:
		return Updated
	case inplace.IsLost(pod, now):
		return Lost
	case revision != current:
		return Displaced
	case pod.DeletionTimestamp != nil:
		return Vacant
	case inplace.IsMarkedNotReady(pod), inplace.IsPreparingUpdate(pod):
		return Begun
	default:
		return Resting
	}
}

// HeldByNumber lets as many wanted pods be at the update revision as there is room for,
// whichever they are, and holds all others. The turns are in the order of updates, which
// decides between equal ones; so is what is held. Besides those whose turns are given, so
// many more are vacant, of which free may be made at the update revision.
//
// Pods at the update revision use up the room, also where they are more.
func HeldByNumber(turns []Turn, vacant, room int) (held []bool, free int) {
	order := make([]int, len(turns))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(turns[a] - turns[b]) })
	later, _ := slices.BinarySearchFunc(order, Vacant+1, func(i int, turn Turn) int { return int(turns[i] - turn) })
	held = make([]bool, len(turns))
	allow := func(indices []int) {
		for _, i := range indices {
			held[i] = turns[i] != Updated && room <= 0
			if !held[i] {
				room--
			}
		}
	}
	allow(order[:later])
	free = max(min(vacant, room), 0)
	room -= free
	allow(order[later:])
	return held, free
}

// CompareBools orders false before true.
func CompareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
