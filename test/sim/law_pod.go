// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of a single pod: its hooks, the order of its containers, their
// environment and how often they were restarted.

// isHeldBack reports whether the lifecycle of a set keeps a pod from counting as
// available.
func isHeldBack(pod *corev1.Pod, set *appsv1beta1.StatefulSet) bool {
	if set == nil || hooksOf(set) == nil {
		return false
	}
	state := lifecycleStateOf(pod)
	return state != "" && state != appsv1beta1.LifecycleStateNormal
}

// checkHook asserts invariant 10: what a hook holds is neither updated nor
// deleted. A pod that was released is not held a second time for what overtakes its
// update.
func (l *law) checkHook(w write, shown *appsv1beta1.StatefulSet) {
	before, ok := w.before.(*corev1.Pod)
	if !ok || shown == nil || hooksOf(shown) == nil {
		return
	}
	lifecycle := hooksOf(shown)
	if w.isAbout("delete Pod") || w.isAbout("evict Pod") {
		if before.DeletionTimestamp == nil && isMarked(before, lifecycle.PreDelete) {
			l.world.violate("invariant 10: %s, which the hook preDelete holds", w.words)
		}
		return
	}
	_, after, ok := l.podsOf(w)
	if ok && isUpdate(before, after) && isMarked(before, lifecycle.InPlaceUpdate) && lifecycleStateOf(before) != appsv1beta1.LifecycleStateUpdating {
		l.world.violate("invariant 10: %s, which the hook inPlaceUpdate holds", w.words)
	}
}

// isUpdate reports whether a pod was changed to be as its template says.
func isUpdate(before, after *corev1.Pod) bool {
	return len(changedContainers(before, after)) > 0 || before.Labels["tier"] != after.Labels["tier"] ||
		before.Annotations[levelKey] != after.Annotations[levelKey]
}

func changedContainers(before, after *corev1.Pod) []string {
	was, is := images(before), images(after)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(is)), func(name string) bool { return was[name] == is[name] })
}

// checkUnhooked asserts that a set without hooks costs no write for them (invariant 6). Pods
// of a CloneSet name their state: Normal, once they may serve.
func (l *law) checkUnhooked(w write) {
	pod, ok := get[*corev1.Pod](l.world.server, w.obj.GetName())
	if !ok || l.world.settings.hooked {
		return
	}
	if l.world.settings.clones.is() && !isGatedBy(pod, appsv1beta1.KruisePodReady) {
		state, opened := lifecycleStateOf(pod), conditionIs(pod, appsv1beta1.InPlaceUpdateReady, corev1.ConditionTrue)
		isNew := state == appsv1beta1.LifecycleStatePreparingNormal && !opened
		if state != "" && state != appsv1beta1.LifecycleStateNormal && !isNew {
			l.world.violate("invariant 6: %s leaves a pod %s without hooks", w.words, state)
		}
		return
	}
	if lifecycleStateOf(pod) != "" || pod.Annotations[appsv1beta1.LifecycleTimestampKey] != "" || isGatedBy(pod, appsv1beta1.KruisePodReady) {
		l.world.violate("invariant 6: %s has to do with hooks that there are not", w.words)
	}
}

// checkStrangers asserts that entries of others in KruisePodReady stay.
func (l *law) checkStrangers(w write) {
	if before, after, ok := l.podsOf(w); ok && !slices.Equal(strangersOf(before), strangersOf(after)) {
		l.world.violate("%s changes who else keeps it out of service: %v to %v", w.words, strangersOf(before), strangersOf(after))
	}
}

// checkWithdrawn asserts invariant 4 at the write that restarts containers.
func (l *law) checkWithdrawn(w write) {
	before, after, ok := l.podsOf(w)
	if !ok || l.seenSet == nil {
		return
	}
	changed := changedContainers(before, after)
	keptReady := l.world.settings.keepReady && slices.Equal(changed, []string{sidecarName})
	lifecycle := hooksOf(l.seenSet)
	marks := lifecycle != nil && lifecycle.InPlaceUpdate != nil && lifecycle.InPlaceUpdate.MarkPodNotReady && isGatedBy(before, appsv1beta1.KruisePodReady)
	if len(changed) == 0 || keptReady || !l.world.mustBeDrained(before) && !marks {
		return
	}
	if !isKeptOut(before) || conditionIs(before, corev1.PodReady, corev1.ConditionTrue) || l.world.slices.sendsTo(before) {
		l.world.violate("invariant 4: %s changes %v while the pod serves", w.words, changed)
	}
}

// checkReturned asserts invariant 4 at the write that puts a pod into service again: its kubelet
// stops nothing by then that was changed.
func (l *law) checkReturned(w write) {
	before, after, ok := l.podsOf(w)
	if !ok || !isKeptOut(before) || isKeptOut(after) {
		return
	}
	worker := l.world.worker(after)
	if worker == nil {
		return
	}
	isRunningAgain := func(name string) bool { return !slices.Contains(worker.stopping, name) }
	if stopped := slices.DeleteFunc(slices.Clone(worker.ours), isRunningAgain); len(stopped) > 0 {
		l.world.violate("invariant 4: %s puts the pod into service while %v are stopped", w.words, stopped)
	}
}

// podUpdate is what was done to the containers of a pod.
type podUpdate struct {
	revision string
	// changed are the containers that were changed for the revision.
	changed sets.Set[string]
	// latest is how each container was when it was changed last.
	latest map[string]containerUpdate
	// restarts is how often containers had been restarted before the revision.
	restarts int32
	// changes is how often each container was changed, whatever for.
	changes map[string]int32
}

type containerUpdate struct {
	revision, id string
	restarts     int32
}

// track notes what a write changes in a pod, and asserts that containers are
// changed in their order.
func (l *law) track(w write) {
	before, after, ok := l.podsOf(w)
	if !ok {
		return
	}
	u := l.updates[after.UID]
	if u == nil {
		u = &podUpdate{latest: map[string]containerUpdate{}, changes: map[string]int32{}}
		l.updates[after.UID] = u
	}
	changed := changedContainers(before, after)
	if name := revisionOf(after); u.revision != name || revisionOf(before) != name {
		u.revision, u.changed = name, sets.New[string]()
		if len(changed) > 0 {
			u.restarts = 0
			for name := range images(before) {
				u.restarts += statusOf(before, name).RestartCount
			}
		}
	}
	l.checkOrder(w, before, after, changed, u.changed)
	for _, name := range changed {
		u.changed.Insert(name)
		u.changes[name]++
		status := statusOf(before, name)
		u.latest[name] = containerUpdate{u.revision, status.ContainerID, status.RestartCount}
	}
}

// checkOrder asserts that no container is changed before those whose turn is
// earlier run what they should, and are ready.
func (l *law) checkOrder(w write, before, after *corev1.Pod, changed []string, earlier sets.Set[string]) {
	places := placesOf(after)
	for _, name := range changed {
		for other, place := range places {
			if mine, has := places[name]; !has || place <= mine {
				continue
			}
			worker := l.world.worker(before)
			switch {
			case slices.Contains(changed, other), isToCome(after, other):
				l.world.violate("%s changes container %s not after %s", w.words, name, other)
			case !earlier.Has(other):
			case !statusOf(before, other).Ready:
				l.world.violate("%s changes container %s while %s is not ready", w.words, name, other)
			case worker == nil || worker.running[other] == nil || worker.running[other].ran != images(before)[other]:
				l.world.violate("%s changes container %s while %s does not run what it should", w.words, name, other)
			}
		}
	}
}

// placesOf returns the places of containers in the launch order.
func placesOf(pod *corev1.Pod) map[string]int {
	places := map[string]int{}
	for _, c := range pod.Spec.Containers {
		for _, env := range c.Env {
			if place, err := strconv.Atoi(env.Value); err == nil && env.Name == appsv1beta1.ContainerLaunchPriorityEnv {
				places[c.Name] = place
			}
		}
	}
	return places
}

// isToCome reports whether the record of a pod leaves a container for later.
func isToCome(pod *corev1.Pod, container string) bool {
	state := appsv1beta1.InPlaceUpdateState{}
	if json.Unmarshal([]byte(pod.Annotations[appsv1beta1.InPlaceUpdateStateKey]), &state) != nil {
		return false
	}
	_, toCome := state.NextContainerImages[container]
	return toCome && state.Revision == revisionOf(pod)
}

func statusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	if i := slices.IndexFunc(statuses, func(s corev1.ContainerStatus) bool { return s.Name == container }); i >= 0 {
		return statuses[i]
	}
	return corev1.ContainerStatus{}
}

// whatIsOutOfDate says what a pod at rest is not, or does not have, that it should.
func (l *law) whatIsOutOfDate(pod *corev1.Pod, set *appsv1beta1.StatefulSet) []string {
	var words []string
	say := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	template := set.Spec.Template
	if pod.Labels["tier"] != template.Labels["tier"] || pod.Annotations[levelKey] != template.Annotations[levelKey] {
		say("its labels and annotations are not those of the template")
	}
	wanted, reads := images(&corev1.Pod{Spec: template.Spec}), levels(pod)
	for name, c := range l.world.worker(pod).running {
		if name != injected && !isImage(c.ran, wanted[name]) {
			say("%s runs the content of %s instead of %s", name, c.ran, wanted[name])
		}
		if c.level != reads[name] {
			say("the environment of %s is%q instead of%q", name, c.level, reads[name])
		}
	}
	if isKeptOut(pod) {
		say("it is kept out of service")
	}
	words = append(words, l.world.whatWasNotRestarted(pod, &template)...)
	return append(words, l.whatCountsWrong(pod)...)
}

// whatCountsWrong says what the pod tells of restarts that is not so.
func (l *law) whatCountsWrong(pod *corev1.Pod) []string {
	if l.resizes.restarted.Has(pod.UID) {
		return nil // a death between two writes leaves restarts uncounted
	}
	u, counts := l.updates[pod.UID], map[string]appsv1beta1.InPlaceUpdateContainerRestartCount{}
	raw, there := pod.Annotations[appsv1beta1.RestartCountKey]
	if u == nil || len(u.latest) == 0 {
		if there {
			return []string{"it counts restarts and was never updated"}
		}
		return nil
	}
	if err := json.Unmarshal([]byte(raw), &counts); err != nil {
		return []string{"its restart counts cannot be read"}
	}
	var words []string
	if total := pod.Annotations[appsv1beta1.PodRestartCountKey]; total != strconv.Itoa(int(u.restarts)) {
		words = append(words, fmt.Sprintf("it says %s restarts before its update, there were %d", total, u.restarts))
	}
	for name, latest := range u.latest {
		found := counts[name]
		if found.Revision != latest.revision || found.RestartCount != latest.restarts {
			words = append(words, fmt.Sprintf("it says %+v of container %s, which had %d restarts before %s", found, name, latest.restarts, latest.revision))
		}
		c, total := l.world.worker(pod).running[name], statusOf(pod, name).RestartCount
		since := total - latest.restarts
		if replaced := c.id != latest.id; !c.crashed && latest.id != "" && replaced != (since > 0) {
			words = append(words, fmt.Sprintf("container %s counts %d restarts since its update", name, since))
		}
		// A kubelet that is behind may run every change that was written, one after
		// the other; but each only once.
		if !c.crashed && total > u.changes[name] {
			words = append(words, fmt.Sprintf("container %s was restarted %d times for %d changes", name, total, u.changes[name]))
		}
	}
	// Admission may spell an image as it was, so that its container is not changed after all.
	mayBeMore := l.world.settings.wider.rewrites.registry != ""
	if len(counts) < len(u.latest) || len(counts) > len(u.latest) && !mayBeMore {
		words = append(words, fmt.Sprintf("it counts restarts of %d containers, %d were updated", len(counts), len(u.latest)))
	}
	return words
}

func revisionOf(pod *corev1.Pod) string {
	return pod.Labels[appsv1beta1.ControllerRevisionHashLabel]
}
