// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of CloneSets in words of their own: their pods are counted,
// whatever their names are.

// members returns the pods that count as replicas, as this reconciliation was
// shown them: those of a set of the same name that was before may still be shown
// as its own.
func (l *law) members() map[string]*corev1.Pod {
	members := maps.Clone(l.seen)
	maps.DeleteFunc(members, func(_ string, pod *corev1.Pod) bool {
		return !metav1.IsControlledBy(pod, l.seenClones) || pod.DeletionTimestamp != nil || pod.Labels["app"] != setName || pod.Status.Phase == corev1.PodFailed
	})
	return members
}

// isTooMany reports whether a pod may go because there are too many.
func (l *law) isTooMany(w write) bool {
	return !w.isAbout("evict Pod") && len(l.members()) > promiseOf(l.seenClones).replicas
}

// checkBudgetOfClones asserts invariant 1 when the operator takes a pod out of
// service: as far as it was shown, enough others are available.
func (l *law) checkBudgetOfClones(w write, pod *corev1.Pod) {
	served := !l.disturbed.Has(pod.Name) && l.wasServed(pod)
	if served || !w.unheard {
		l.disturbed.Insert(pod.Name)
	}
	if !served {
		return
	}
	if w.unheard {
		l.unanswered[pod.Name] = l.decidedBy()
	}
	left := sets.New[string]()
	for name, other := range l.members() {
		if by, ok := l.unanswered[name]; ok && by != l.decidedBy() && l.looksAvailable(other, l.seenSet) {
			left.Insert(name) // by the earlier spec and history, the manager would have chosen it first again
			continue
		}
		if !l.disturbed.Has(name) && l.looksAvailable(other, l.seenSet) {
			left.Insert(name)
		}
	}
	promise := promiseOf(l.seenClones)
	if needed := promise.replicas - promise.maxUnavailable; left.Len() < needed {
		l.world.violate("invariant 1: %s leaves %v available, %d pods are needed", w.words, sets.List(left), needed)
	}
}

// decidedBy stands for what a decision about a CloneSet was made by: its spec, and how
// much of its history is known.
func (l *law) decidedBy() int64 {
	known := int64(0)
	for _, revision := range l.world.manager.cache.list("ControllerRevision") {
		if metav1.IsControlledBy(revision, l.seenClones) {
			known++
		}
	}
	return l.seenClones.Generation<<8 + known
}

// checkNumberOfClones asserts that there are no more pods than replicas and
// maxSurge by a creation. A pod whose creation was not answered, and that was not
// shown since, the operator cannot know of.
func (l *law) checkNumberOfClones(w write) {
	if l.seenClones == nil {
		return
	}
	l.made.Insert(w.obj.GetUID())
	promise := promiseOf(l.seenClones)
	limit := promise.replicas + promise.maxSurge
	if n := len(l.members()) + l.made.Len(); n > limit {
		l.world.violate("invariant 1: %s makes %d pods, there may be %d", w.words, n, limit)
	}
	l.checkCloneLabels(w)
}

// checkPartitionOfClones asserts invariant 2: no more than replicas − partition pods
// are updated. Pods that are asked to be deleted keep no place: what replaces them may
// be there before they go. A partition of 0 keeps no pod old, so pods beyond replicas
// are as new as the others.
func (l *law) checkPartitionOfClones(w write, name string) {
	before, existed := w.before.(*corev1.Pod)
	promise, current := promiseOf(l.seenClones), l.seenSet.Status.CurrentRevision
	if promise.partition == 0 || existed && revisionOf(before) == name || name == current || current == "" || l.imagesOf(current) == nil {
		return
	}
	members, at := l.members(), 0
	for podName, pod := range all[*corev1.Pod](l.world.server) {
		_, known := members[podName]
		if (known || l.made.Has(pod.UID)) && pod.DeletionTimestamp == nil && revisionOf(pod) == name && !l.isAsked(pod) && !isResizing(pod) {
			at++
		}
	}
	if room := promise.replicas - promise.partition; at > room {
		l.world.violate("invariant 2: %s makes %d pods at %s, the partition leaves room for %d", w.words, at, name, room)
	}
}

// isAsked reports whether a user asks for the deletion of a pod, or it goes
// already, and a hook holds it.
func (l *law) isAsked(pod *corev1.Pod) bool {
	_, labeled := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	return labeled || lifecycleStateOf(pod) == appsv1beta1.LifecycleStatePreparingDelete || slices.Contains(l.seenClones.Spec.ScaleStrategy.PodsToDelete, pod.Name)
}

// checkCloneLabels asserts that the labels of a pod's identity agree with its name
// and its revision, where it has one.
func (l *law) checkCloneLabels(w write) {
	pod, ok := get[*corev1.Pod](l.world.server, w.obj.GetName())
	if _, byHand := l.world.hands.made[w.obj.GetUID()]; !ok || l.seenClones == nil || byHand || l.world.settings.clones.isPlain() {
		return
	}
	id, hash := pod.Labels[appsv1beta1.CloneSetInstanceIDKey], pod.Labels[appsv1beta1.PodTemplateHashLabel]
	if setName+"-"+id != pod.Name || setName+"-"+hash != revisionOf(pod) {
		l.world.violate("%s leaves it labeled as %s at %s, its revision is %s", w.words, id, hash, revisionOf(pod))
	}
}

// whatIsWrongWithClones says what is not so at rest that only a CloneSet has.
func (l *law) whatIsWrongWithClones() []string {
	w := l.world
	set := w.counted()
	if set == nil || w.settings.clones.isPlain() {
		return nil
	}
	var words []string
	claims := all[*corev1.PersistentVolumeClaim](w.server)
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		_, podName := splitClaim(name)
		pod, exists := get[*corev1.Pod](w.server, podName)
		switch owner := metav1.GetControllerOf(claims[name]); {
		case !exists && !w.settings.clones.reuse && metav1.IsControlledBy(claims[name], set):
			words = append(words, fmt.Sprintf("claim %s is left", name))
		case exists && owner != nil && owner.UID == pod.UID:
			words = append(words, fmt.Sprintf("claim %s goes with its pod", name))
		}
	}
	promise := promiseOf(set)
	if expected := int(set.Status.ExpectedUpdatedReplicas); expected != promise.replicas-promise.partition {
		words = append(words, fmt.Sprintf("%d pods are expected to be updated", expected))
	}
	return words
}

// mayLackClaim reports whether a pod may be without its claim: made by a manager
// that was dead, it may have come when its claim was taken for one that is left.
// What protects a claim that is in use is not simulated.
func (w *World) mayLackClaim() bool {
	return w.settings.clones.is() && w.lateArrival
}
