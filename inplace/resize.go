// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

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
func grow(before *observed, target Target, change Change, now time.Time) *Step {
	if len(change.Grow) > 0 {
		rest := Change{Images: change.Images, Later: change.Later, Resize: change.Resize, Shrink: change.Shrink}
		return &Step{
			Action: Resize, State: Resizing, Change: change,
			Message: fmt.Sprintf("%s; then %s", change.Grow, rest),
		}
	}
	if len(change.Images) == 0 || before.resized.State == resize.Done || !before.grewFor(target.Template) {
		return nil
	}
	step := awaitResize(before, target, now)
	if step.Action != Wait {
		return &step
	}
	if needsMarkReady(before.pod) && !before.resized.IsUnderWay() {
		serving := &Step{Action: MarkReady, State: Verifying, Message: "it serves while it waits for room: " + step.Message}
		if state := target.stateAtRest(before.pod); lifecycleState(before.pod) == appsv1beta1.LifecycleStatePreparingNormal && state == appsv1beta1.LifecycleStateNormal {
			serving.Lifecycle = state
		}
		// In any other state, its hook has released it once, and is not asked again.
		return serving
	}
	step.Change = change
	return &step
}

// awaitResize waits for the node, or gives up waiting, as the workload wants it.
func awaitResize(before *observed, target Target, now time.Time) Step {
	verdict, progress := target.resizePolicy().Judge(before.resized, now)
	step := Step{
		State: Resizing, Reason: resizeReasons[progress.State], Message: progress.Message,
		Since: progress.Since, Until: progress.Recheck,
	}
	switch verdict {
	case resize.Recreate:
		return evict(before.pod, target, step, now)
	case resize.Keep:
		step.State = Stuck
		step.Message = target.kept(step.Reason, step.Message)
		if target.irreplaceable != nil {
			step.Until = soonest(step.Until, target.irreplaceable.Until)
		}
		return step
	case resize.Wait:
		return overdue(step, target.Deadline, now)
	default:
		return step
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
func (t Target) resizePolicy() resize.Policy {
	if t.frozen || t.irreplaceable != nil || t.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return t.Resize.Keeping()
	}
	return t.Resize
}

// settleSizes finishes or takes back the resizes of a pod that stays at its
// revision; nil if there is nothing to do and nothing to wait for.
func settleSizes(before *observed, target Target, now time.Time) *Step {
	if step := resizeAgain(before, target, isReady(before.pod), now); step != nil {
		return step
	}
	if before.resized.State == resize.Done {
		return nil
	}
	step := awaitResize(before, target, now)
	return &step
}

// evicted returns the step that makes a pod go whose resize does not succeed, or
// that waits for its hook to release it; nil if it stays.
func evicted(before *observed, target Target, now time.Time) *Step {
	if before.resized.State == resize.Done {
		return nil
	}
	if sizes, refused := before.unfinished(target, false); refused != nil || len(sizes) > 0 {
		return nil // it is to have other sizes
	}
	if step := awaitResize(before, target, now); step.Evict {
		return &step
	}
	return nil
}

// resizeWhileOut makes a pod that is out of service, or given up by its hook, serve
// again only when that was done for which it is: its containers have been restarted
// for their sizes, or what another client changed was set back. One that has no room
// goes back: what it waits for may never come.
func resizeWhileOut(before *observed, target Target, now time.Time) *Step {
	out, held := IsMarkedNotReady(before.pod), IsPreparingUpdate(before.pod) && target.Lifecycle != nil
	if !out && !held {
		return nil
	}
	sizes, refused := before.unfinished(target, false)
	if refused == nil && (out && sizes.Restarts() || held && before.isDrift(sizes)) {
		return resizeAgain(before, target, false, now)
	}
	if !out || !before.resized.IsUnderWay() {
		return nil
	}
	step := awaitResize(before, target, now)
	return &step
}

// resizeAgain returns the step that makes the sizes of a pod what its revision
// says; nil if they are.
func resizeAgain(before *observed, target Target, serves bool, now time.Time) *Step {
	pod := before.pod
	sizes, refused := before.unfinished(target, serves)
	if refused != nil {
		step := refuseSizes(before, target, resizeRefusal(refused), now)
		return &step
	}
	isDue := serves && len(before.state.NextContainerResources) > 0
	if len(sizes) == 0 && !isDue {
		return nil
	}
	change := Change{Resize: sizes}
	if before.isDrift(sizes) {
		if step := hold(before, target, change, now); step != nil {
			return step
		}
	}
	if refused := target.undrainable(pod, change); refused != nil {
		step := waitUndrained(refused, before.state.UpdateTimestamp.Time)
		return &step
	}
	if change.Restarts() && !target.keepsReady(change) {
		if step := drain(before, target, change, now); step != nil {
			return step
		}
	}
	recorded := change
	if !serves {
		recorded.Shrink = before.shrinks()
	}
	step := &Step{
		Action: Resize, State: Resizing, Message: change.String(), Change: change,
		Record: newState(before, recorded, RevisionOf(pod), now),
	}
	if len(sizes) == 0 {
		step.Action, step.State, step.Message = Patch, Patching, "the sizes are as the revision says"
	}
	return step
}

// evict makes a pod go through the eviction API, so that its PodDisruptionBudgets
// have their say.
func evict(pod *corev1.Pod, target Target, why Step, now time.Time) Step {
	step := remove(pod, target, why, now)
	step.Evict = true
	return step
}
