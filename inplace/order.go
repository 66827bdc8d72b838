// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// queue holds pods whose updates are still to come, the highest priority first. A pod
// that has begun leaves it when the queue is asked for the first.
type queue struct {
	pods     []*view
	hasBegun func(*view) bool
}

// before returns the first pod of the queue if it has a higher priority than another pod;
// else nil.
func (q *queue) before(v *view) *view {
	for len(q.pods) > 0 && q.hasBegun(q.pods[0]) {
		q.pods = q.pods[1:]
	}
	if len(q.pods) == 0 || q.pods[0].facts.Priority.Compare(v.facts.Priority) >= 0 {
		return nil
	}
	return q.pods[0]
}

// line fills the queues of a plan.
func (p *planner) line(views []*view) {
	var toCome []*view
	for _, v := range views {
		if v.isToCome() {
			toCome = append(toCome, v)
		}
	}
	slices.SortStableFunc(toCome, func(a, b *view) int { return a.facts.Priority.Compare(b.facts.Priority) })
	p.updates = queue{pods: toCome, hasBegun: func(v *view) bool { return v.started }}
	p.claimChanges = queue{pods: toCome, hasBegun: func(v *view) bool {
		return v.started || v.claimsStarted || v.facts.Claims.IsChanging() || v.Step.State != UpdatingClaims
	}}
}

// isToCome reports whether the update of a pod has not begun, and can begin by itself.
// What is broken, and what the user asks to be deleted, comes first in any case.
func (v *view) isToCome() bool {
	switch {
	case !v.wants || v.asked || v.reserved || v.Pod.DeletionTimestamp != nil || v.class == broken || v.class == begun:
		return false
	case v.Step.State == UpdatingClaims:
		return true
	default:
		return v.Step.State != Stuck && v.Step.starts()
	}
}

// passingPeriod is for how long a pod that is not ready is taken for one that will be by
// itself, as the members of a database are while another one of them takes over. After
// that it is updated whatever its priority, or a bad revision could not be left.
const passingPeriod = time.Minute

// awaitsTurn returns the pod of a queue that comes before one whose update, or the change
// of whose claims, is about to start; nil if that may start now. What is out of service for
// its update goes on: the others wait for it.
func (p *planner) awaitsTurn(q *queue, v *view) *view {
	first := q.before(v)
	switch {
	case v.asked || v.class == broken || v.class == begun:
		return nil
	case first == nil || v.class != unready:
		return first
	}
	recovers := lastTransition(v.Pod, corev1.PodReady).Add(passingPeriod)
	if !p.now.Before(recovers) {
		return nil
	}
	p.recheckAt(recovers)
	return first
}

// lastTransition returns when a condition of a pod changed, or the pod was created.
func lastTransition(pod *corev1.Pod, kind corev1.PodConditionType) time.Time {
	return latest(condition(pod, kind).LastTransitionTime.Time, pod.CreationTimestamp.Time)
}

func turnMessage(first *view) string {
	return fmt.Sprintf("pod %s comes before it, by unorderedUpdate or priorityStrategy", first.Pod.Name)
}
