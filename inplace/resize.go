// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// Sizes are changed by a write of their own, pods/resize, which takes no labels:
// the record and the label of the revision follow in the next write. In between
// the pod is what its spec says, and it is known by its managedFields who made it
// so: see resize.Written. Where containers are given another image in the same
// revision, the pod grows first, then it is taken out of service, and it shrinks
// when it serves again: see resize.Change.Split.

// grow makes what is to be changed before the pod is taken out of service, and
// waits until the node has done it; nil if there is nothing to do and nothing to
// wait for. A resize of an earlier revision is not waited for.
func (s *situation) grow() *Step {
	pod, change := s.facts.Pod, s.change
	if len(change.Grow) > 0 {
		rest := Change{Images: change.Images, Later: change.Later, Resize: change.Resize, Shrink: change.Shrink}
		return &Step{
			Action: Resize, State: Resizing, Change: change, LeadsToPatch: true,
			Message: fmt.Sprintf("%s; then %s", change.Grow, rest),
		}
	}
	if len(change.Images) == 0 || s.observed.resized.State == resize.Done || !s.observed.grewFor(s.target.Template) {
		return nil
	}
	step := s.awaitResize()
	if step.Action != Wait {
		return step
	}
	if needsMarkReady(pod) && !s.observed.resized.IsUnderWay() {
		serving := &Step{Action: MarkReady, State: Verifying, Message: "it serves while it waits for room: " + step.Message}
		if state := s.target.stateAtRest(pod); lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingNormal && state == appsv1beta1.LifecycleStateNormal {
			serving.Lifecycle = state
		}
		// In any other state, its hook has released it once, and is not asked again.
		return serving
	}
	step.Change = change
	step.LeadsToPatch = step.State == Resizing // not if it is stuck, or to be deleted
	return step
}

// awaitResize waits for the node, or gives up waiting, as the workload wants it.
func (s *situation) awaitResize() *Step {
	verdict, progress := s.resizePolicy().Judge(s.observed.resized, s.now)
	step := Step{
		State: Resizing, Reason: resizeReasons[progress.State], Message: progress.Message,
		Since: progress.Since, Until: progress.Recheck,
	}
	switch verdict {
	case resize.Recreate:
		return ptr.To(s.evict(step.Reason, step.Message))
	case resize.Keep:
		step.State = Stuck
		step.Message = s.keptSizesMessage(step.Reason, step.Message)
		if s.facts.Irreplaceable != nil {
			step.Until = soonest(step.Until, s.facts.Irreplaceable.Until)
		}
		return &step
	case resize.Wait:
		return s.overdue(step)
	default:
		return &step
	}
}

var resizeReasons = map[resize.State]string{
	resize.NotObserved: ReasonNotObserved,
	resize.InProgress:  ReasonResizeInProgress,
	resize.Deferred:    ReasonResizeDeferred,
	resize.Infeasible:  ReasonResizeInfeasible,
	resize.Failed:      ReasonResizeError,
}

// resizePolicy returns what to do about resizes that do not succeed. A pod that is
// only ever changed in place is not recreated for one, nor is one that could not be made
// again.
func (s *situation) resizePolicy() resize.Policy {
	if s.frozen || s.facts.Irreplaceable != nil || s.target.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return s.target.Resize.Keeping()
	}
	return s.target.Resize
}

// settleSizes finishes or takes back the resizes of a pod that stays at its
// revision; nil if there is nothing to do and nothing to wait for.
func (s *situation) settleSizes() *Step {
	if step := s.resizeAgain(isReady(s.facts.Pod)); step != nil {
		return step
	}
	if s.observed.resized.State == resize.Done {
		return nil
	}
	return s.awaitResize()
}

// evicted returns the step that makes a pod go whose resize does not succeed, or
// that waits for its hook to release it; nil if it stays.
func (s *situation) evicted() *Step {
	if s.observed.resized.State == resize.Done {
		return nil
	}
	if sizes, refused := s.unfinished(false); refused != nil || len(sizes) > 0 {
		return nil // it is to have other sizes
	}
	if step := s.awaitResize(); step.Evict {
		return step
	}
	return nil
}

// resizeWhileOut makes a pod that is out of service, or given up by its hook, serve
// again only when that was done for which it is: its containers have been restarted
// for their sizes, or what another client changed was set back. One that has no room
// goes back: what it waits for may never come.
func (s *situation) resizeWhileOut() *Step {
	out, isPreparing := IsMarkedNotReady(s.facts.Pod), IsPreparingUpdate(s.facts.Pod) && s.target.Lifecycle != nil
	if !out && !isPreparing {
		return nil
	}
	sizes, refused := s.unfinished(false)
	if refused == nil && (out && sizes.Restarts() || isPreparing && s.observed.isDrift(sizes)) {
		return s.resizeAgain(false)
	}
	if !out || !s.observed.resized.IsUnderWay() {
		return nil
	}
	return s.awaitResize()
}

// resizeAgain returns the step that makes the sizes of a pod what its revision
// says; nil if they are.
func (s *situation) resizeAgain(serves bool) *Step {
	sizes, refused := s.unfinished(serves)
	if refused != nil {
		return ptr.To(s.recreateOrKeepSizes(resizeRefusal(refused)))
	}
	isDue := serves && len(s.observed.state.NextContainerResources) > 0
	if len(sizes) == 0 && !isDue {
		return nil
	}
	again := s.with(Change{Resize: sizes})
	if s.observed.isDrift(sizes) {
		if step := again.awaitHook(); step != nil {
			return step
		}
	}
	if refused := again.undrainable(); refused != nil {
		return ptr.To(stayUndrained(refused, s.observed.state.UpdateTimestamp.Time))
	}
	if step := again.drain(); step != nil {
		return step
	}
	recorded := again.change
	if !serves {
		recorded.Shrink = s.observed.shrinks()
	}
	step := &Step{
		Action: Resize, State: Resizing, Message: again.change.String(),
		Change: again.change, LeadsToPatch: true, Record: newState(s.observed, recorded, RevisionOf(s.facts.Pod), s.now),
	}
	if len(sizes) == 0 {
		step.Action, step.State, step.Message = Patch, Patching, "the sizes are as the revision says"
	}
	return step
}

// evict makes a pod go through the eviction API, so that its PodDisruptionBudgets
// have their say.
func (s *situation) evict(reason, message string) Step {
	step := s.remove(reason, message)
	step.Evict = true
	return step
}
