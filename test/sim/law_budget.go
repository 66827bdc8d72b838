// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
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
	if !slices.Contains(podsOf(set), pod.Name) {
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
