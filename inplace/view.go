// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/resize"
)

// view is a pod as the planner sees it.
type view struct {
	PodState
	// situation is what its step is decided on.
	situation
	class class
	// wants is true when the pod is to become the target revision, or is asked
	// to be recreated.
	wants bool
	// recheck is when time alone completes an earlier change; zero if it does not.
	recheck time.Time
	// asked is true when a label asks for the recreation of the pod.
	asked bool
	// between is true when the pod serves between two batches of its update: it was
	// not drained for the first.
	between bool
	// reserved is true when the pod serves and has a place in the budget
	// nevertheless: it has grown for what it is to become, or the kubelet restarts
	// containers of it as soon as there is room for their sizes.
	reserved bool
	// started is true when the plan begins the update of the pod, claimsStarted when it
	// begins that of its claims.
	started, claimsStarted bool
}

// class orders the pods that want to change.
type class int

const (
	// broken: not ready, and waiting will not make it so.
	broken class = iota
	// begun: being drained or restarted by us.
	begun
	// unready: runs, but is not ready.
	unready
	// serving: ready.
	serving
)

func (p *planner) newView(facts PodFacts) *view {
	w, v := &p.workload, &view{situation: p.situationOf(facts)}
	s, pod := &v.situation, facts.Pod
	atTarget := s.isAtTarget()
	progress, resized := s.observed.progress(), s.observed.resized
	v.asked, v.class, v.recheck = AsksForDeletion(facts), classOf(pod, w.Target, progress.Complete), progress.Recheck
	v.wants = v.asked || !atTarget && !facts.Held && !w.Stopped
	v.PodState = PodState{
		Pod:       pod,
		Proved:    progress.Proved,
		Updated:   atTarget && progress.Proved,
		Ready:     isReady(pod),
		Serves:    serves(pod, w, p.now),
		Undrained: isReadyDespiteLabel(pod, w.Target),
	}
	v.Available = progress.Complete && v.Serves
	if v.wants {
		v.Step = s.next()
	} else {
		v.Step = s.finishWithClaims()
	}
	if facts.Irreplaceable != nil && v.Step.Deletes() && !v.Step.Evict {
		v.Step = s.keepIrreplaceable()
	}
	v.Step.SuccessorPull = p.successorPull(v)
	v.reserved = v.wants && s.hasGrown() || resized.State == resize.Deferred && resized.Restarts
	v.wants = v.wants || takesOut(v.Step)
	v.between = !v.wants && progress.Reason == ReasonNextBatch && v.Step.LeadsToPatch && v.Serves
	return v
}

// takesOut reports whether a step takes a pod out of service that stays at its revision: because of
// its sizes, on request, or to be made again.
func takesOut(step Step) bool {
	if step.OnRequest {
		return true
	}
	switch step.Action {
	case Recreate:
		return true
	case SetLifecycle:
		return step.IsHold()
	case Patch:
		return false // of a batch that was allowed with the first one
	case Wait, MarkReady, MarkNotReady, Resize, ChangeClaims:
		return step.LeadsToPatch && step.Change.Resize.Restarts() && len(step.Change.Images) == 0
	default:
		return false
	}
}

// serves reports whether a pod would be available if nothing were being changed in it.
func serves(pod *corev1.Pod, w *Workload, now time.Time) bool {
	return !IsMarkedNotReady(pod) && !w.Target.isHeldBack(pod) && isAvailable(pod, w.MinReadySeconds, now)
}

// takesResizePlace reports whether a pod takes one of the places for resizes: it is
// being resized or, since it was, has not been ready. One whose kubelet does not
// answer takes none.
func (v *view) takesResizePlace() bool {
	state := v.observed.resized.State
	switch {
	case v.Pod.DeletionTimestamp != nil:
		return false
	case v.Ready:
		return v.observed.resized.IsUnderWay()
	case state == resize.InProgress, state == resize.Done:
		return len(v.observed.own) > 0 && RevisionOf(v.Pod) == v.target.Name && UpdatedInPlace(v.Pod)
	default:
		return false
	}
}

// startsResize reports whether the next step of a pod takes a place for resizes that the
// pod does not hold, also where the pod is out of service for something else. What is
// broken takes none.
func (v *view) startsResize() bool {
	return v.Step.Action == Resize && v.class != broken && !v.observed.resized.IsUnderWay() && !v.takesResizePlace()
}

func classOf(pod *corev1.Pod, target Target, complete bool) class {
	switch {
	case IsBroken(pod):
		return broken
	case !complete || IsMarkedNotReady(pod) || target.isGivenUp(pod):
		return begun
	case !isReady(pod):
		return unready
	default:
		return serving
	}
}

// inPlanningOrder returns the pods that stay as they are, then those that want to
// change: broken ones first, of equals those that a user asks for, else in the
// order given.
func inPlanningOrder(views []*view) []*view {
	ordered := slices.Clone(views)
	slices.SortStableFunc(ordered, func(a, b *view) int {
		switch {
		case a.wants != b.wants && b.wants:
			return -1
		case a.wants != b.wants:
			return 1
		case !a.wants:
			return 0
		default:
			return cmp.Or(cmp.Compare(a.class, b.class), compareAsked(a, b))
		}
	})
	return ordered
}

func compareAsked(a, b *view) int {
	switch {
	case a.asked == b.asked:
		return 0
	case a.asked:
		return -1
	default:
		return 1
	}
}
