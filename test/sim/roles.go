// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// roleKey is the label that says what a pod is in its database.
const (
	roleKey     = "example.io/role"
	primaryRole = "primary"
	replicaRole = "replica"
)

// RunRoles is Run for a database: one of its pods is the primary, by a label that moves
// when it likes, and is to be updated last. Half of them have volumes.
func RunRoles(choices *Choices) Result {
	return run(choices, chosenRoles(choices))
}

// chosenRoles returns settings as the choices have it.
func chosenRoles(choices *Choices) settings {
	s := chosen(choices)
	s.replicas, s.maxUnavailable, s.deadline = 2+choices.intN(3), 1, 0
	s.clones, s.resizes, s.hooked, s.respects = clones{}, resizes{}, false, false
	s.ordered, s.unordered, s.roles = choices.oneIn(2), true, true
	if choices.oneIn(2) {
		s.claims, s.volumes = true, chosenVolumes(choices)
		s.volumes.wish.class, s.volumes.wish.second = pick(choices, []string{"standard", "wait", "offline", "remount"}), ""
	}
	return s
}

// primaryLast is the order of updates of a database.
func primaryLast() *appsv1beta1.UpdatePriorityStrategy {
	return &appsv1beta1.UpdatePriorityStrategy{WeightPriority: []appsv1beta1.UpdatePriorityWeightTerm{{
		Weight: 100,
		MatchSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: roleKey, Operator: metav1.LabelSelectorOpNotIn, Values: []string{primaryRole}},
		}},
	}}}
}

// roleDisturbances may happen to a database.
var roleDisturbances = []disturbance{
	{"switchover", (*World).switchOver, 12},
	{"switchover in steps", (*World).switchOverInSteps, 6},
	{"no role", (*World).loseRole, 2},
}

// unlessRoles are the names of disturbances that let one pod wait for what others do not
// wait for, or the user ask for more than one pod at a time. Other runs have them.
var unlessRoles = []string{
	"budget", "partition", "update refused", "lifecycle", "hook silent", "hook at the wrong moment", "kept out by others", "policy",
	"scale", "adopted", "pod evicted", "resizer silent", "other claims", "previous claims",
	"claim strategy", "claims at a time", "claim class by hand", "claim deleted", "storage quota", "storage class",
}

// switchOver makes another pod the primary, and all others replicas.
func (w *World) switchOver() {
	names := w.podNames()
	if len(names) == 0 {
		return
	}
	primary := pick(w.choices, names)
	for _, name := range names {
		w.setRole(name, map[bool]string{true: primaryRole, false: replicaRole}[name == primary])
	}
}

// switchOverInSteps makes another pod the primary some seconds before, or after, the one
// that was it knows.
func (w *World) switchOverInSteps() {
	names := w.podNames()
	if len(names) == 0 {
		return
	}
	primary, first := pick(w.choices, names), w.choices.oneIn(2)
	promote := func(w *World) { w.setRole(primary, primaryRole) }
	demote := func(w *World) {
		for _, name := range w.podNames() {
			if name != primary {
				w.setRole(name, replicaRole)
			}
		}
	}
	if first {
		promote, demote = demote, promote
	}
	promote(w)
	w.in(1+w.choices.intN(20), demote)
}

func (w *World) loseRole() {
	if names := w.podNames(); len(names) > 0 {
		w.setRole(pick(w.choices, names), "")
	}
}

func (w *World) podNames() []string {
	return slices.Sorted(maps.Keys(all[*corev1.Pod](w.server)))
}

// setRole labels a pod; an empty role takes the label off.
func (w *World) setRole(name, role string) {
	w.say("database: %s is %q", name, role)
	mutate(w.server, name, func(pod *corev1.Pod) {
		labels := maps.Clone(pod.Labels)
		labels[roleKey] = role
		if role == "" {
			delete(labels, roleKey)
		}
		pod.Labels = labels
	})
}

// checkRole asserts that no primary that serves is taken out of service for its update, or
// deleted for that, while another pod serves at the same revision: that one comes first.
func (l *law) checkRole(w write) {
	before, ok := w.before.(*corev1.Pod)
	set := l.seenSet
	if !l.world.settings.roles || !ok || set == nil || before.Labels[roleKey] != primaryRole || !l.isToUpdate(before, set) {
		return
	}
	for _, name := range podsOf(set) {
		other, ok := get[*corev1.Pod](l.world.server, name)
		if ok && name != before.Name && other.Labels[roleKey] != primaryRole && revisionOf(other) == revisionOf(before) && l.isToUpdate(other, set) {
			l.world.violate("role: %s takes out the primary, and %s is still to be updated", w.words, name)
		}
	}
}

// isToUpdate reports whether a pod serves, in truth and as far as was shown, and is
// to be updated by the operator itself. One that was changed a minute ago at most may still
// be being changed, as far as the operator can know.
func (l *law) isToUpdate(pod *corev1.Pod, set *appsv1beta1.StatefulSet) bool {
	if _, isAsked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]; isAsked || !slices.Contains(podsOf(set), pod.Name) || !l.wasServed(pod) {
		return false
	}
	seen, state := l.seen[pod.Name], appsv1beta1.InPlaceUpdateState{}
	_ = json.Unmarshal([]byte(pod.Annotations[appsv1beta1.InPlaceUpdateStateKey]), &state) // none is an empty one
	return seen.UID == pod.UID && seen.Labels[roleKey] == pod.Labels[roleKey] && revisionOf(seen) == revisionOf(pod) &&
		revisionOf(pod) != set.Status.UpdateRevision && l.world.clock.Now().Sub(state.UpdateTimestamp.Time) > time.Minute
}
