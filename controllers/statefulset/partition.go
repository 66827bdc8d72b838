// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/controllers/workload"
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
		slices.SortStableFunc(ordered, func(a, b *member) int { return workload.CompareBools(a.healthy, b.healthy) })
	default:
		slices.SortStableFunc(ordered, func(a, b *member) int { return s.priorityOf(a).Compare(s.priorityOf(b)) })
	}
	return ordered
}

// priorityOf returns the priority of a pod by the labels that it has now; nil if the set
// gives none.
func (s *scope) priorityOf(m *member) inplace.Priority {
	strategy := s.set.GetUnorderedUpdate()
	if strategy == nil || strategy.PriorityStrategy == nil {
		return nil
	}
	if s.priorities == nil {
		s.priorities = inplace.Priorities(strategy.PriorityStrategy)
	}
	return s.priorities(m.Labels)
}

// heldOrdinals returns the wanted ordinals that the partition keeps at the
// current revision, whether they have a pod or not: as many as it says, the lowest.
// Reserved ordinals have no pods, and do not count.
func (s *scope) heldOrdinals() sets.Set[int] {
	if s.set.GetUnorderedUpdate() != nil {
		return s.heldByNumber()
	}
	kept, held := s.wanted.First(int(s.set.GetPartition())), sets.New[int]()
	for _, ordinal := range s.ordinals {
		if kept.Has(ordinal) {
			held.Insert(ordinal)
		}
	}
	return held
}

// heldByNumber holds the ordinals for which there is no room at the update
// revision, see [workload.HeldByNumber]. When the update is back at the current
// revision, there is nothing else to keep pods at.
func (s *scope) heldByNumber() sets.Set[int] {
	held := sets.New[int]()
	update, current := s.Revisions.MarkOf(s.Revisions.Update), s.Revisions.MarkOf(s.Revisions.Current)
	if update == current {
		return held
	}
	var ordinals []int
	var turns []workload.Turn
	for _, m := range s.inUpdateOrder() {
		ordinals, turns = append(ordinals, m.ordinal), append(turns, workload.TurnOf(m.Pod, update, current, s.Now))
	}
	pods := byOrdinal(s.members)
	for _, ordinal := range slices.Backward(s.ordinals) {
		if pods[ordinal] == nil {
			ordinals, turns = append(ordinals, ordinal), append(turns, workload.Vacant)
		}
	}
	room, outOfView := s.replicas-int(s.set.GetPartition()), s.replicas-len(s.ordinals)
	isHeld, _ := workload.HeldByNumber(turns, outOfView, room)
	for i, ordinal := range ordinals {
		if isHeld[i] {
			held.Insert(ordinal)
		}
	}
	return held
}
