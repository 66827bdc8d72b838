// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// forget begins the life of a manager. What the last one took out a moment ago,
// and no controller has counted yet, this one cannot know of; nor what the server refused
// to it.
func (l *law) forget() {
	l.taken = sets.New[types.UID]()
	l.refusedSizes = map[types.UID]string{}
}

// checkDisruption asserts that the operator takes no ready pod out of service that
// its budget needs: of the pods that the controller has counted, without those that
// the operator took out itself. What happened in the last seconds, it cannot know:
// to others, or to a pod that was not ready when it was last shown. Pods of a
// scale-down go as they do in Kubernetes.
func (l *law) checkDisruption(w write) {
	pod, ok := w.before.(*corev1.Pod)
	set, budget := l.seenSet, l.world.server.budget
	if !ok || set == nil || !respectsBudgets(set) || budget.minAvailable < 0 || !isHealthy(pod) {
		return
	}
	if shown := l.seen[pod.Name]; shown != nil && !isHealthy(shown) {
		return
	}
	if _, after, ok := l.podsOf(w); ok && after.DeletionTimestamp == nil && after.Generation == pod.Generation && !isKeptOut(after) {
		return // it serves on, though a hook holds it
	}
	if l.seenClones != nil {
		if l.isTooMany(w) {
			return
		}
		l.checkCount(w, pod)
		return
	}
	if l.daemons == nil && !slices.Contains(podsOf(set), pod.Name) || l.daemons != nil && (l.daemons.isToGo(pod) || l.daemons.isRelieved(pod)) {
		return
	}
	l.checkCount(w, pod)
}

// checkCount asserts that the budget can do without a pod. It was asked for one whose gate is
// closed when that was closed: the pod is on its way out, whatever its kubelet has said yet.
func (l *law) checkCount(w write, pod *corev1.Pod) {
	l.taken.Insert(pod.UID)
	if isGateClosed(pod) {
		return
	}
	budget := l.world.server.budget
	if left := budget.counted().Difference(l.taken).Len(); left < budget.minAvailable {
		l.world.violate("%s leaves %d healthy pods, the budget needs %d", w.words, left, budget.minAvailable)
	}
}

// serves reports whether a pod counts for its budget, and will go on to: nothing is
// about to be done to it.
func (w *World) serves(pod *corev1.Pod) bool {
	worker := w.worker(pod)
	return isHealthy(pod) && !isKeptOut(pod) && worker != nil && worker.seen == pod.Generation && worker.areReady()
}

// checkBudget asserts invariant 1 when the operator takes a pod out of service:
// with those that it was shown to be out, and those that it took out itself, no
// more than maxUnavailable may be.
func (l *law) checkBudget(w write) {
	pod, ok := w.before.(*corev1.Pod)
	set := l.seenSet
	if !ok || set == nil {
		return
	}
	if l.seenClones != nil {
		l.checkBudgetOfClones(w, pod)
		return
	}
	if l.daemons != nil {
		l.daemons.checkBudget(w, pod)
		return
	}
	wanted := sets.New(podsOf(set)...)
	if !wanted.Has(pod.Name) || l.disturbed.Has(pod.Name) || !l.wasServed(w.before) {
		if !w.unheard {
			l.disturbed.Insert(pod.Name)
		}
		return
	}
	out := sets.New(pod.Name)
	for name := range wanted {
		if at, ok := l.unanswered[name]; ok && at != set.Generation && l.looksAvailable(l.seen[name], set) {
			continue // by the earlier spec, the manager would have chosen it first again
		}
		if l.disturbed.Has(name) || !l.looksAvailable(l.seen[name], set) {
			out.Insert(name)
		}
	}
	l.disturbed.Insert(pod.Name)
	if w.unheard {
		l.unanswered[pod.Name] = set.Generation
	}
	if limit := budgetOfSet(set); out.Len() > limit {
		l.world.violate("invariant 1: %s takes out one pod too many: %v are out, maxUnavailable is %d", w.words, sets.List(out), limit)
	}
}

// wasServed reports whether a pod served, in truth and as far as was shown.
func (l *law) wasServed(before client.Object) bool {
	pod, ok := before.(*corev1.Pod)
	return ok && l.world.isAvailable(pod) && l.looksAvailable(l.seen[pod.Name], l.seenSet)
}

// looksAvailable reports whether a pod serves as far as it shows itself.
func (l *law) looksAvailable(pod *corev1.Pod, set *appsv1beta1.StatefulSet) bool {
	if pod == nil || pod.DeletionTimestamp != nil || !conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) ||
		isKeptOut(pod) || isHeldBack(pod, set) {
		return false
	}
	since := conditionSince(pod, corev1.PodReady)
	for _, status := range pod.Status.ContainerStatuses {
		if running := status.State.Running; running != nil && running.StartedAt.After(since) {
			since = running.StartedAt.Time
		}
	}
	minReady := readyFor(set)
	return minReady == 0 || l.world.clock.Now().After(since.Add(minReady))
}
