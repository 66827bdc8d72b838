// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// checkCanComeBack asserts that no pod that is needed goes for the template, as the operator has
// decided at a moment, while the server would not accept another one, and had not for a while.
func (l *nativeLaw) checkCanComeBack(pod *corev1.Pod, words string, decided time.Time) {
	template := l.n.world.settings.template(l.n.wish.revision)
	r := l.n.revisionIn(&template) // the first with this template
	if r == nil || !l.n.isRefused(r) || decided.Sub(l.n.refused[r.name]) < longKnown || !isHealthy(pod) {
		return
	}
	others := 0
	for _, other := range l.n.pods() {
		if other.Name != pod.Name && l.n.isAvailable(other) {
			others++
		}
	}
	if others < l.n.replicas() {
		l.n.world.violate("%s, which serves, and the server has refused new pods of revision %s for %s", words, r.name, l.n.world.clock.Since(l.n.refused[r.name]))
	}
}

// isLostByRelease reports whether a pod that a hold has made goes although it serves, when an
// update is done, and is told to be so or about to.
func (l *nativeLaw) isLostByRelease(pod *corev1.Pod) bool {
	if l.n.kind != nativecontroller.Deployment || l.n.late != nil || !conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
		return false
	}
	isNew := l.n.world.clock.Since(pod.CreationTimestamp.Time) < newDelay
	if isNew || l.n.world.isPutIntoService(pod) || !l.n.world.server.drains.isCertain(l.n.world.clock.Now()) {
		return false
	}
	isDone := l.isPromoted() && !l.isOfKeeper(pod) && !l.isNeeded() || len(l.updated) == l.n.replicas() && !l.updated.Has(pod.UID)
	return isDone && l.n.replicas() > 0 && l.n.world.clock.Since(l.askedAt) >= askedDelay
}

// tell is told of the events of the operator.
func (l *nativeLaw) tell(reason, note string) {
	if reason == "LeftBehind" {
		l.left, l.leftAt = note, l.n.world.clock.Now()
	}
	if reason == "ReleasedForRecreation" {
		l.checkPulledBefore(note)
	}
	if reason != "UpdatedInPlace" {
		return
	}
	l.updated = sets.New[types.UID]()
	isKnown := slices.ContainsFunc(l.n.replicaSets(), l.isKeeper)
	for _, pod := range l.n.pods() {
		if len(l.whatIsWrong(pod)) == 0 && (!isKnown || l.isOfKeeper(pod)) {
			l.updated.Insert(pod.UID)
		}
	}
}
