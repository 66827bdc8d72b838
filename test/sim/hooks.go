// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// hooks say which lifecycle hooks a set has. The zero value is a set without.
type hooks struct {
	preNormal, inPlaceUpdate, preDelete bool
	// shared: all hooks have the same mark.
	shared bool
	// finalizers: marks are finalizers; else they are labels.
	finalizers bool
	// marksUpdate, marksDelete: markPodNotReady of inPlaceUpdate and preDelete.
	marksUpdate, marksDelete bool
}

func chosenHooks(c *Choices) hooks {
	return hooks{
		inPlaceUpdate: !c.oneIn(4), preDelete: !c.oneIn(3), preNormal: c.oneIn(3), shared: c.oneIn(3), finalizers: c.oneIn(2),
		marksUpdate: c.oneIn(2), marksDelete: c.oneIn(3),
	}
}

// markDomain is the domain of all that marks pods for hooks.
const markDomain = "hold.example.io/"

func (h hooks) hook(name string, marksNotReady bool) *appsv1beta1.LifecycleHook {
	if h.shared {
		name = "all"
	}
	hook := &appsv1beta1.LifecycleHook{MarkPodNotReady: marksNotReady}
	if h.finalizers {
		hook.FinalizersHandler = []string{markDomain + name}
	} else {
		hook.LabelsHandler = map[string]string{markDomain + name: "true"}
	}
	return hook
}

// lifecycle returns the hooks as a set has them; nil for none.
func (h hooks) lifecycle() *appsv1beta1.Lifecycle {
	lifecycle := &appsv1beta1.Lifecycle{}
	if h.preNormal {
		lifecycle.PreNormal = h.hook("normal", false)
	}
	if h.inPlaceUpdate {
		lifecycle.InPlaceUpdate = h.hook("update", h.marksUpdate)
	}
	if h.preDelete {
		lifecycle.PreDelete = h.hook("delete", h.marksDelete)
	}
	return lifecycle.OrNil()
}

// mark gives the template what holds its pods before updates and deletions.
func (h hooks) mark(t *corev1.PodTemplateSpec) {
	lifecycle := h.lifecycle()
	if lifecycle == nil {
		return
	}
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta}
	putMarks(pod, lifecycle.InPlaceUpdate)
	putMarks(pod, lifecycle.PreDelete)
	t.ObjectMeta = pod.ObjectMeta
}

// marks returns how many marks a hook has, and how many of them a pod has.
func marks(pod *corev1.Pod, hook *appsv1beta1.LifecycleHook) (has, of int) {
	if hook == nil {
		return 0, 0
	}
	for key, value := range hook.LabelsHandler {
		if found, ok := pod.Labels[key]; ok && found == value {
			has++
		}
	}
	for _, finalizer := range hook.FinalizersHandler {
		if slices.Contains(pod.Finalizers, finalizer) {
			has++
		}
	}
	return has, len(hook.LabelsHandler) + len(hook.FinalizersHandler)
}

func isMarked(pod *corev1.Pod, hook *appsv1beta1.LifecycleHook) bool {
	has, _ := marks(pod, hook)
	return has > 0
}

func lacksMarks(pod *corev1.Pod, hook *appsv1beta1.LifecycleHook) bool {
	has, of := marks(pod, hook)
	return has < of
}

func putMarks(pod *corev1.Pod, hook *appsv1beta1.LifecycleHook) {
	if hook == nil {
		return
	}
	for key, value := range hook.LabelsHandler {
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[key] = value
	}
	for _, finalizer := range hook.FinalizersHandler {
		if !slices.Contains(pod.Finalizers, finalizer) && pod.DeletionTimestamp == nil {
			pod.Finalizers = append(pod.Finalizers, finalizer)
		}
	}
}

func takeMarks(pod *corev1.Pod, hook *appsv1beta1.LifecycleHook) {
	for key := range hook.LabelsHandler {
		delete(pod.Labels, key)
	}
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return slices.Contains(hook.FinalizersHandler, f) })
}

// takeFinalizers releases a pod that is being deleted, whatever it was held for.
func takeFinalizers(pod *corev1.Pod) {
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return strings.HasPrefix(f, markDomain) })
}

func lifecycleStateOf(pod *corev1.Pod) appsv1beta1.LifecycleStateType {
	return appsv1beta1.LifecycleStateType(pod.Labels[appsv1beta1.LifecycleStateKey])
}

// hookController is who has a say on pods: it releases them when it has done what
// it does, and takes them in again.
type hookController struct {
	world *World
	// silentUntil: it does nothing before.
	silentUntil time.Time
	// due is when it answers, by pod and what it is asked.
	due map[string]time.Time
}

func newHookController(w *World) *hookController {
	return &hookController{world: w, due: map[string]time.Time{}}
}

// step is one second.
func (h *hookController) step() {
	now := h.world.clock.Now()
	if now.Before(h.silentUntil) {
		return
	}
	pods, due := all[*corev1.Pod](h.world.server), h.due
	h.due = map[string]time.Time{}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		answer, words := h.answerTo(pods[name])
		if answer == nil {
			continue
		}
		question := fmt.Sprint(pods[name].UID, words)
		at, asked := due[question]
		if !asked {
			s := h.world.settings
			at = now.Add(time.Duration(s.minHookDelay)*time.Second + h.world.choices.seconds(s.hookDelay-s.minHookDelay))
		}
		if now.Before(at) {
			h.due[question] = at
			continue
		}
		h.world.say("hook: %s %s", words, name)
		mutate(h.world.server, name, answer)
	}
}

// answerTo returns what it does to a pod in its state, and in words; nil for
// nothing.
func (h *hookController) answerTo(pod *corev1.Pod) (answer func(*corev1.Pod), words string) {
	if pod.DeletionTimestamp != nil && slices.ContainsFunc(pod.Finalizers, func(f string) bool { return strings.HasPrefix(f, markDomain) }) {
		return takeFinalizers, "releases the deleted pod:"
	}
	set := h.world.set()
	if set == nil || hooksOf(set) == nil {
		return nil, ""
	}
	lifecycle := hooksOf(set)
	take := func(hook *appsv1beta1.LifecycleHook) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { takeMarks(pod, hook) }
	}
	put := func(hook *appsv1beta1.LifecycleHook) func(*corev1.Pod) {
		return func(pod *corev1.Pod) { putMarks(pod, hook) }
	}
	switch state := lifecycleStateOf(pod); {
	case state == appsv1beta1.LifecycleStatePreparingUpdate && isMarked(pod, lifecycle.InPlaceUpdate):
		return take(lifecycle.InPlaceUpdate), "agrees to the update of"
	case state == appsv1beta1.LifecycleStatePreparingDelete && isMarked(pod, lifecycle.PreDelete):
		return take(lifecycle.PreDelete), "agrees to the deletion of"
	case state == appsv1beta1.LifecycleStateUpdated && lacksMarks(pod, lifecycle.InPlaceUpdate):
		return put(lifecycle.InPlaceUpdate), "takes in the updated"
	case state == appsv1beta1.LifecycleStatePreparingNormal && lacksMarks(pod, lifecycle.PreNormal):
		return put(lifecycle.PreNormal), "takes in the new"
	default:
		return nil, ""
	}
}

// changeLifecycle adds, changes or removes the hooks of the set.
func (w *World) changeLifecycle() {
	if !w.settings.hooked {
		return
	}
	lifecycle := (*appsv1beta1.Lifecycle)(nil)
	if !w.choices.oneIn(3) {
		lifecycle = chosenHooks(w.choices).lifecycle()
	}
	w.say("user: lifecycle %s", hookWords(lifecycle))
	w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Lifecycle = lifecycle })
}

func hookWords(lifecycle *appsv1beta1.Lifecycle) string {
	if lifecycle == nil {
		return "none"
	}
	var words []string
	for _, h := range []struct {
		name string
		hook *appsv1beta1.LifecycleHook
	}{{"preNormal", lifecycle.PreNormal}, {"inPlaceUpdate", lifecycle.InPlaceUpdate}, {"preDelete", lifecycle.PreDelete}} {
		if h.hook == nil {
			continue
		}
		words = append(words, fmt.Sprintf("%s %v%v", h.name, slices.Sorted(maps.Keys(h.hook.LabelsHandler)), h.hook.FinalizersHandler))
		if h.hook.MarkPodNotReady {
			words = append(words, "not ready")
		}
	}
	return strings.Join(words, " ")
}

// silenceHook lets the hook controller say nothing for long.
func (w *World) silenceHook() {
	if !w.settings.hooked {
		return
	}
	silence := w.choices.seconds(120)
	if w.choices.oneIn(4) {
		silence = restless // it does not come back before all calms down
	}
	w.say("hook: says nothing for %s", silence)
	w.hook.silentUntil = w.clock.Now().Add(silence)
}

// hookAtWrongMoment puts the marks of a hook on a pod, or takes them off, whatever
// its state.
func (w *World) hookAtWrongMoment() {
	lifecycle := hooksOf(w.set())
	pod := w.anyPod()
	if pod == nil || lifecycle == nil {
		return
	}
	hook := pick(w.choices, []*appsv1beta1.LifecycleHook{lifecycle.InPlaceUpdate, lifecycle.PreDelete, lifecycle.PreNormal})
	if hook == nil {
		return
	}
	if w.choices.oneIn(4) {
		w.say("hook: takes its marks off %s", pod.Name)
		mutate(w.server, pod.Name, func(pod *corev1.Pod) { takeMarks(pod, hook) })
		return
	}
	w.say("hook: puts its marks on %s", pod.Name)
	mutate(w.server, pod.Name, func(pod *corev1.Pod) { putMarks(pod, hook) })
}
