// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// A hook is defined by labels and finalizers. A pod that has one of them is held
// before it is updated or deleted; one that lacks one of them is held before it
// counts as available. Whoever wants to have a say puts them on the pod and takes
// them off. A workload without hooks costs no write.

// lifecycleState returns the state that the label of a pod names.
func lifecycleState(pod *corev1.Pod) appsv1beta1.LifecycleStateType {
	return appsv1beta1.LifecycleStateType(pod.Labels[appsv1beta1.LifecycleStateKey])
}

// lifecycleSince returns since when a pod has been in its state.
func lifecycleSince(pod *corev1.Pod) time.Time {
	since, err := time.Parse(time.RFC3339, pod.Annotations[appsv1beta1.LifecycleTimestampKey])
	if err != nil {
		return time.Time{}
	}
	return since
}

// handlers returns the labels and finalizers of a hook, in words, for which is
// true; sorted.
func handlers(hook *appsv1beta1.LifecycleHook, is func(there bool) bool, pod *corev1.Pod) []string {
	if hook == nil {
		return nil
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(hook.LabelsHandler)) {
		value, ok := pod.Labels[key]
		if is(ok && value == hook.LabelsHandler[key]) {
			found = append(found, fmt.Sprintf("label %s=%s", key, hook.LabelsHandler[key]))
		}
	}
	for _, finalizer := range hook.FinalizersHandler {
		if is(slices.Contains(pod.Finalizers, finalizer)) {
			found = append(found, "finalizer "+finalizer)
		}
	}
	return found
}

// holding returns the labels and finalizers by which a hook holds a pod.
func holding(hook *appsv1beta1.LifecycleHook, pod *corev1.Pod) []string {
	return handlers(hook, func(there bool) bool { return there }, pod)
}

// missing returns the labels and finalizers of a hook that a pod lacks.
func missing(hook *appsv1beta1.LifecycleHook, pod *corev1.Pod) []string {
	return handlers(hook, func(there bool) bool { return !there }, pod)
}

// hooks returns the hooks of a target; the zero value if there are none.
func (t Target) hooks() appsv1beta1.Lifecycle {
	if t.Lifecycle == nil {
		return appsv1beta1.Lifecycle{}
	}
	return *t.Lifecycle
}

// marksNotReady reports whether pods are marked not ready by KruisePodReady, too,
// when they are updated.
func (t Target) marksNotReady() bool {
	hook := t.hooks().InPlaceUpdate
	return hook != nil && hook.MarkPodNotReady
}

// revives reports whether a pod that was held before its deletion may serve again
// when it is wanted after all. Where it was marked not ready for its deletion, it
// goes, as in OpenKruise: what serves in its place may be there already.
func (t Target) revives() bool {
	hook := t.hooks().PreDelete
	return hook == nil || !hook.MarkPodNotReady
}

// IsServing reports whether no hook of the lifecycle holds a pod. One that is being updated
// serves when it is ready: it may wait between two batches for pods that wait for it.
func IsServing(pod *corev1.Pod, lifecycle *appsv1beta1.Lifecycle) bool {
	return lifecycleState(pod) == appsv1beta1.LifecycleStateUpdating || !Target{Lifecycle: lifecycle}.isHeldBack(pod)
}

// IsPreparingUpdate reports whether a pod is, or was, held for an update that has
// not begun.
func IsPreparingUpdate(pod *corev1.Pod) bool {
	return lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingUpdate
}

// isHeldBack reports whether the lifecycle keeps a pod from counting as available,
// whatever its conditions say.
func (t Target) isHeldBack(pod *corev1.Pod) bool {
	if t.Lifecycle == nil {
		return false
	}
	state := lifecycleState(pod)
	return state != "" && state != appsv1beta1.LifecycleStateNormal
}

// IsGivenUp reports whether a pod is, or was, held by its hook for an update or a deletion, and
// does not count until that is over. It may go on serving while it waits for its update or
// deletion.
func IsGivenUp(pod *corev1.Pod, lifecycle *appsv1beta1.Lifecycle) bool {
	return Target{Lifecycle: lifecycle}.isGivenUp(pod)
}

// isGivenUp reports whether a pod is out of service by agreement with its hook:
// whatever is done to it takes nothing away.
func (t Target) isGivenUp(pod *corev1.Pod) bool {
	if t.Lifecycle == nil {
		return false
	}
	switch lifecycleState(pod) {
	case appsv1beta1.LifecycleStatePreparingUpdate, appsv1beta1.LifecycleStateUpdated, appsv1beta1.LifecycleStatePreparingDelete:
		return true
	case "", appsv1beta1.LifecycleStateNormal, appsv1beta1.LifecycleStatePreparingNormal, appsv1beta1.LifecycleStateUpdating:
		return false
	default:
		return false
	}
}

// awaitHook stops a pod before it is changed, for as long as the hook inPlaceUpdate
// holds it; nil if it does not. A pod that its hook has released is not held a second
// time for a revision that overtakes the one it was released for, until it has come to
// rest.
func (s *situation) awaitHook() *Step {
	pod, change := s.facts.Pod, s.change
	hook := s.target.hooks().InPlaceUpdate
	if hook == nil || change.isEmpty() {
		return nil
	}
	state, by := lifecycleState(pod), holding(hook, pod)
	step := &Step{
		State: HookHeld, Reason: ReasonInPlaceUpdateHook, Change: change, LeadsToPatch: true, Since: lifecycleSince(pod),
		Pending: newPendingUpdate(s.observed, change, s.target.Name),
	}
	switch {
	case state == appsv1beta1.LifecycleStateUpdating && !s.observed.progress().Complete:
		return nil
	case state == appsv1beta1.LifecycleStatePreparingUpdate && len(by) == 0:
		return nil
	case state == appsv1beta1.LifecycleStatePreparingUpdate && isAnnounced(pod, step.Pending):
		step.Message = "held before its update by " + strings.Join(by, ", ")
		return s.overdue(*step)
	case state == appsv1beta1.LifecycleStateUpdated && len(missing(hook, pod)) > 0:
		step.Handler = hook
	case len(by) == 0:
		return nil
	}
	step.Action, step.Lifecycle = SetLifecycle, appsv1beta1.LifecycleStatePreparingUpdate
	if state != appsv1beta1.LifecycleStatePreparingUpdate {
		step.Since = time.Time{}
	}
	step.Message = "to be updated to " + s.target.Name
	if hook.MarkPodNotReady && !s.target.keepsReady(change) {
		step.NotReadyKey = notReadyKeyUpdate
	}
	return step
}

func newPendingUpdate(o *observed, change Change, revision string) *appsv1beta1.PendingUpdate {
	pending := &appsv1beta1.PendingUpdate{
		Revision:    revision,
		Labels:      slices.Sorted(maps.Keys(change.Labels)),
		Annotations: slices.Sorted(maps.Keys(change.Annotations)),
		Tolerations: change.Tolerations,
	}
	for _, image := range change.all() {
		pending.Containers = append(pending.Containers, appsv1beta1.PendingContainerUpdate{
			Name: image.Container, Image: image.From, NewImage: image.To,
		})
	}
	announceSizes(o, pending, change.Resizes())
	return pending
}

// announceSizes adds to a pending update the sizes that are changed.
func announceSizes(o *observed, pending *appsv1beta1.PendingUpdate, sizes resize.Change) {
	present, wanted := sizes.Before().Requirements(), sizes.Amounts().Requirements()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		old, updated := present[name], wanted[name]
		if name == "" {
			pending.Resources, pending.NewResources = &old, &updated
			continue
		}
		i := slices.IndexFunc(pending.Containers, func(c appsv1beta1.PendingContainerUpdate) bool { return c.Name == name })
		if i < 0 {
			i = len(pending.Containers)
			image := o.container(name).image
			pending.Containers = append(pending.Containers, appsv1beta1.PendingContainerUpdate{Name: name, Image: image, NewImage: image})
		}
		pending.Containers[i].Resources, pending.Containers[i].NewResources = &old, &updated
	}
}

// isAnnounced reports whether a pod says what it is held for.
func isAnnounced(pod *corev1.Pod, pending *appsv1beta1.PendingUpdate) bool {
	// Text and slices of texts marshal.
	raw, _ := json.Marshal(pending)
	return pod.Annotations[appsv1beta1.PendingUpdateKey] == string(raw)
}

// Remove returns the step that makes a pod go: it is deleted, when the hook
// preDelete does not hold it any more.
func Remove(pod *corev1.Pod, target Target, now time.Time) Step {
	if pod.DeletionTimestamp != nil {
		return Terminate(pod, now)
	}
	// What it shows of its updates makes no difference.
	s := &situation{facts: PodFacts{Pod: pod}, target: &target, now: now}
	return s.remove(ReasonScaleIn, "it is not wanted any more")
}

// remove makes a pod go, and says why.
func (s *situation) remove(reason, message string) Step {
	pod, hook := s.facts.Pod, s.target.hooks().PreDelete
	by := holding(hook, pod)
	if len(by) == 0 {
		return Step{Action: Recreate, State: Recreating, Reason: reason, Message: message}
	}
	if lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingDelete {
		return *s.overdue(Step{
			State: HookHeld, Reason: ReasonPreDeleteHook, Since: lifecycleSince(pod),
			Message: "held before its deletion by " + strings.Join(by, ", "),
		})
	}
	step := Step{
		Action: SetLifecycle, State: HookHeld, Reason: reason, Message: "to be deleted: " + message,
		Lifecycle: appsv1beta1.LifecycleStatePreparingDelete,
	}
	if hook.MarkPodNotReady {
		step.NotReadyKey = notReadyKeyDelete
	}
	return step
}

// awaitsNode reports whether a new pod stays PreparingNormal since it has no node yet, as in
// CloneSets of OpenKruise.
func (t Target) awaitsNode(pod *corev1.Pod) bool {
	return t.ShowsState && pod.Spec.NodeName == "" && lifecycleState(pod) == appsv1beta1.LifecycleStatePreparingNormal
}

// leftOver returns the state to write to a pod of a workload without hooks: Normal,
// if the label tells of a hook that is no more, or of a pod that had no node; else none.
func (t Target) leftOver(pod *corev1.Pod) appsv1beta1.LifecycleStateType {
	if state := lifecycleState(pod); state == "" || state == appsv1beta1.LifecycleStateNormal || t.awaitsNode(pod) {
		return ""
	}
	return appsv1beta1.LifecycleStateNormal
}

// stateAtRest returns the state in which a pod is to be when nothing is done to
// it; the present one if it cannot leave that yet.
func (t Target) stateAtRest(pod *corev1.Pod) appsv1beta1.LifecycleStateType {
	hooks, state := t.hooks(), lifecycleState(pod)
	switch state {
	case appsv1beta1.LifecycleStatePreparingUpdate, appsv1beta1.LifecycleStateUpdating, appsv1beta1.LifecycleStateUpdated:
		// A pod that was never held has nothing to get back.
		_, wasHeld := pod.Annotations[appsv1beta1.PendingUpdateKey]
		if len(missing(hooks.InPlaceUpdate, pod)) > 0 && (wasHeld || state == appsv1beta1.LifecycleStateUpdated) {
			return appsv1beta1.LifecycleStateUpdated
		}
	case appsv1beta1.LifecycleStatePreparingNormal, appsv1beta1.LifecycleStatePreparingDelete:
		if len(missing(hooks.PreNormal, pod)) > 0 || t.awaitsNode(pod) {
			return appsv1beta1.LifecycleStatePreparingNormal
		}
	case "", appsv1beta1.LifecycleStateNormal:
		return state
	}
	return appsv1beta1.LifecycleStateNormal
}

// rest brings the label of a pod to which nothing is done to where it belongs,
// and waits for the hooks that have to be there before it counts; nil if there is
// nothing to do and nothing to wait for.
func (s *situation) rest() *Step {
	pod, target := s.facts.Pod, s.target
	if target.Lifecycle == nil && target.leftOver(pod) == "" {
		return nil
	}
	state, wanted := lifecycleState(pod), target.stateAtRest(pod)
	if state != wanted {
		return &Step{Action: SetLifecycle, State: Verifying, Lifecycle: wanted, Message: fmt.Sprintf("%s after %s", wanted, state)}
	}
	step := Step{State: HookHeld, Since: lifecycleSince(pod)}
	switch wanted {
	case appsv1beta1.LifecycleStateUpdated:
		step.Reason = ReasonUpdatedHook
		step.Message = "updated; it counts again when it gets back " + strings.Join(missing(target.hooks().InPlaceUpdate, pod), ", ")
	case appsv1beta1.LifecycleStatePreparingNormal:
		lacks := missing(target.hooks().PreNormal, pod)
		if len(lacks) == 0 {
			return nil // its node will be an event
		}
		step.Reason = ReasonPreNormalHook
		step.Message = "it counts when it gets " + strings.Join(lacks, ", ")
	case "", appsv1beta1.LifecycleStateNormal, appsv1beta1.LifecycleStatePreparingUpdate,
		appsv1beta1.LifecycleStateUpdating, appsv1beta1.LifecycleStatePreparingDelete:
		return nil
	}
	return s.overdue(step)
}

// PrepareNew gives a pod that is about to be created what its workload needs besides the
// template: the first state of its lifecycle, and the readiness gates through which it is
// taken out of service. Where pods are updated in place, that is InPlaceUpdateReady,
// whether or not the template lists it, as OpenKruise does for CloneSets.
func PrepareNew(pod *corev1.Pod, target Target, now time.Time) {
	if target.Policy != appsv1beta1.RecreatePodUpdateStrategyType {
		addGate(pod, appsv1beta1.InPlaceUpdateReady)
	}
	hooks, state := target.hooks(), appsv1beta1.LifecycleStateNormal
	switch {
	case target.Lifecycle == nil && !target.ShowsState:
		return
	case len(missing(hooks.PreNormal, pod)) > 0, target.ShowsState:
		state = appsv1beta1.LifecycleStatePreparingNormal
	}
	pod.Labels = withValues(pod.Labels, map[string]string{appsv1beta1.LifecycleStateKey: string(state)})
	pod.Annotations = withValues(pod.Annotations, map[string]string{appsv1beta1.LifecycleTimestampKey: now.UTC().Format(time.RFC3339)})
	marks := func(hook *appsv1beta1.LifecycleHook) bool { return hook != nil && hook.MarkPodNotReady }
	if marks(hooks.InPlaceUpdate) || marks(hooks.PreDelete) {
		addGate(pod, appsv1beta1.KruisePodReady)
	}
}

func withValues(all, more map[string]string) map[string]string {
	merged := make(map[string]string, len(all)+len(more))
	maps.Copy(merged, all)
	maps.Copy(merged, more)
	return merged
}

// handlerFinalizers returns the finalizers of a hook that a pod lacks.
func handlerFinalizers(hook *appsv1beta1.LifecycleHook, pod *corev1.Pod) []string {
	if hook == nil {
		return nil
	}
	return sets.List(sets.New(hook.FinalizersHandler...).Delete(pod.Finalizers...))
}
