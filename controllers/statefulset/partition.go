// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// inUpdateOrder returns the members in the order in which their updates start:
// the highest ordinal first, or as unorderedUpdate says.
func (s *scope) inUpdateOrder() []*member {
	ordered := slices.Clone(s.members)
	slices.Reverse(ordered)
	strategy := s.set.GetUnorderedUpdate()
	switch {
	case strategy == nil:
	case strategy.PriorityStrategy == nil:
		slices.SortStableFunc(ordered, func(a, b *member) int { return compareBools(a.healthy, b.healthy) })
	default:
		priorityOf := inplace.Priorities(strategy.PriorityStrategy)
		priorities := make(map[*member]inplace.Priority, len(ordered))
		for _, m := range ordered {
			priorities[m] = priorityOf(m.Labels)
		}
		slices.SortStableFunc(ordered, func(a, b *member) int { return priorities[a].Compare(priorities[b]) })
	}
	return ordered
}

// compareBools orders false before true.
func compareBools(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// heldOrdinals returns the wanted ordinals that the partition keeps at the
// current revision, whether they have a pod or not.
func (s *scope) heldOrdinals() sets.Set[int] {
	if s.set.GetUnorderedUpdate() != nil {
		return s.heldByNumber()
	}
	held := sets.New[int]()
	for _, ordinal := range s.ordinals {
		if ordinal < s.set.GetOrdinalsStart()+int(s.set.GetPartition()) {
			held.Insert(ordinal)
		}
	}
	return held
}

// turn is how early an ordinal is let go where the partition is a number of
// pods.
type turn int

const (
	// updated: its pod is at the update revision, and stays there.
	updated turn = iota
	// displaced: its pod has left the current revision, and cannot stay old.
	displaced
	// begun: its pod is being taken out of service for the update.
	begun
	// vacant: a pod is to be made for it in any case.
	vacant
	// resting: its pod runs the current revision.
	resting
	// lost: its pod cannot be replaced by us.
	lost
)

// heldByNumber lets go as many pods as the update may have, whichever they are,
// and returns the ordinals of all others.
//
// Pods at the update revision use up what may be let go, also where they are
// more. When the update is back at the current revision, there is nothing else
// to keep pods at.
func (s *scope) heldByNumber() sets.Set[int] {
	if s.update.Name() == s.current.Name() {
		return sets.New[int]()
	}
	held := sets.New(s.ordinals...)
	room := len(s.ordinals) - int(s.set.GetPartition())
	for _, next := range s.slots() {
		if next.turn == updated || room > 0 {
			held.Delete(next.ordinal)
			room--
		}
	}
	return held
}

// slot is a wanted ordinal and its turn.
type slot struct {
	ordinal int
	turn    turn
}

// slots returns the wanted ordinals, the earliest turn first; those of the same
// turn in the order of updates.
func (s *scope) slots() []slot {
	slots := make([]slot, 0, len(s.ordinals))
	pods := byOrdinal(s.members)
	for _, m := range s.inUpdateOrder() {
		slots = append(slots, slot{m.ordinal, s.turnOf(m)})
	}
	for _, ordinal := range slices.Backward(s.ordinals) {
		if pods[ordinal] == nil {
			slots = append(slots, slot{ordinal, vacant})
		}
	}
	slices.SortStableFunc(slots, func(a, b slot) int { return int(a.turn - b.turn) })
	return slots
}

func (s *scope) turnOf(m *member) turn {
	revision := m.Labels[appsv1beta1.ControllerRevisionHashLabel]
	switch {
	case revision == s.update.Name():
		return updated
	case inplace.IsLost(m.Pod, s.now):
		return lost
	case revision != s.current.Name():
		return displaced
	case m.DeletionTimestamp != nil:
		return vacant
	case inplace.IsMarkedNotReady(m.Pod):
		return begun
	default:
		return resting
	}
}
