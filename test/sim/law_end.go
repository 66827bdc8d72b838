// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// end asserts invariant 8 after a reconciliation that wrote nothing: what is
// not ready names what it waits for.
func (l *law) end() {
	set := l.world.set()
	if set == nil || l.attempts > 0 || set.Status.ObservedGeneration != set.Generation ||
		l.seenSet == nil || l.seenSet.ResourceVersion != set.ResourceVersion {
		return
	}
	ready := meta.IsStatusConditionTrue(set.Status.Conditions, appsv1beta1.ConditionReady)
	if !ready && !rests(set) && !l.isScaling(set) && len(set.Status.Blockers) == 0 &&
		meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionFailedCreatePod) == nil {
		l.world.violate("invariant 8: not ready, and nothing is named that it waits for: %s", conditionWords(set))
	}
	for _, b := range set.Status.Blockers {
		if b.Reason == "" || b.Message == "" || b.Since.IsZero() {
			l.world.violate("invariant 8: the blocker of %s says nothing: %+v", b.Pod, b)
		}
	}
}

// isScaling reports whether pods are to be made or to go.
func (l *law) isScaling(set *appsv1beta1.StatefulSet) bool {
	if l.daemons != nil {
		return l.daemons.isScaling() || l.isKeptAway(set)
	}
	wanted := replicasOf(set)
	return (len(l.seenOfSet()) != wanted || len(l.livingOfSet()) != wanted) && !l.isSuccessorAwaited(set) || l.isKeptAway(set)
}

// seenOfSet returns the names of the pods that were shown as the set's.
func (l *law) seenOfSet() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(l.seen)), func(name string) bool { return !metav1.IsControlledBy(l.seen[name], l.seenSet) })
}

// livingOfSet returns the names of the shown pods of the set that are not being deleted.
func (l *law) livingOfSet() []string {
	return slices.DeleteFunc(l.seenOfSet(), func(name string) bool { return l.seen[name].DeletionTimestamp != nil })
}

// isSuccessorAwaited reports whether pods are missing until others are gone, whose claims
// they take over, and nothing else is said to hold them up.
func (l *law) isSuccessorAwaited(set *appsv1beta1.StatefulSet) bool {
	clones := l.seenClones
	if clones == nil || len(clones.Spec.VolumeClaimTemplates) == 0 || !clones.ReusesClaims() || len(l.livingOfSet()) >= replicasOf(set) {
		return false
	}
	ready := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionReady)
	if ready != nil && strings.Contains(ready.Message, "scaleStrategy.maxUnavailable") {
		return false
	}
	return slices.ContainsFunc(l.seenOfSet(), func(name string) bool {
		pod := l.seen[name]
		_, asked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
		isLost := pod.DeletionTimestamp != nil && l.world.clock.Since(pod.DeletionTimestamp.Time) >= time.Minute
		return pod.DeletionTimestamp != nil && !isLost && !asked && !l.isAsked(pod)
	})
}

func conditionWords(set *appsv1beta1.StatefulSet) string {
	words := make([]string, 0, len(set.Status.Conditions))
	for _, c := range set.Status.Conditions {
		words = append(words, fmt.Sprintf("%s=%s (%s: %s)", c.Type, c.Status, c.Reason, c.Message))
	}
	return strings.Join(words, ", ")
}

// checkRest asserts how a run ends: everything is as the user asked for last.
func (l *law) checkRest() {
	w := l.world
	if missing := l.whatIsMissing(); missing != "" {
		w.violate("in the end, %s", missing)
	}
	if left := slices.Sorted(maps.Keys(w.pullers())); len(left) > 0 {
		w.violate("in the end, %v are left", left)
	}
}

// whatIsMissing says what is not as the user asked for; empty if all is.
func (l *law) whatIsMissing() string { //nolint:gocyclo // a list of what is looked at, one line each
	if l.daemons != nil {
		return l.daemons.whatIsMissing()
	}
	w, set := l.world, l.world.set()
	pods := w.podsOfSet()
	wanted := images(&corev1.Pod{Spec: set.Spec.Template.Spec})
	var missing []string
	say := func(format string, args ...any) { missing = append(missing, fmt.Sprintf(format, args...)) }
	for _, name := range w.names(set) {
		pod := pods[name]
		delete(pods, name)
		switch {
		case pod == nil:
			say("%s is not there", name)
		case !maps.EqualFunc(ownImages(pod), wanted, means):
			say("%s has images %v instead of %v", name, images(pod), wanted)
		case revisionOf(pod) != set.Status.UpdateRevision:
			say("%s is at %s instead of %s", name, revisionOf(pod), set.Status.UpdateRevision)
		case len(l.whatSizeIsWrong(pod, &set.Spec.Template.Spec)) > 0:
			say("%s: %v", name, l.whatSizeIsWrong(pod, &set.Spec.Template.Spec))
		case hasDrainedLabel(pod):
			say("%s is still drained", name)
		case !w.isAvailable(pod) || !w.settings.unserved && !w.slices.sendsTo(pod):
			say("%s does not serve", name)
		case w.settings.claims && !w.mayLackClaim() && w.server.objects[objectKey{"PersistentVolumeClaim", "data-" + name}] == nil:
			say("%s has no claim", name)
		default:
			for _, words := range l.whatIsOutOfDate(pod, set) {
				say("%s: %s", name, words)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		say("%s should not be there", name)
	}
	missing = append(missing, l.whatIsWrongWithClones()...)
	if revision, ok := get[*appsv1.ControllerRevision](w.server, set.Status.UpdateRevision); !ok || !metav1.IsControlledBy(revision, set) {
		say("its update revision %q is not one of its own", set.Status.UpdateRevision)
	}
	replicas, status := int32(replicasOf(set)), set.Status //nolint:gosec // small
	for _, count := range []int32{
		status.Replicas, status.ReadyReplicas, status.AvailableReplicas, status.UpdatedReplicas,
		status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas, status.CurrentReplicas,
	} {
		if count != replicas {
			say("a count is %d instead of %d", count, replicas)
		}
	}
	lacking, blocked := l.whatClaimsLack(set)
	missing = append(missing, lacking...)
	if len(blocked) > 0 {
		if meta.IsStatusConditionTrue(status.Conditions, appsv1beta1.ConditionReady) || status.ObservedGeneration != set.Generation {
			say("%v have claims that are not done, status says: %s", blocked, conditionWords(set))
		}
		return strings.Join(missing, "; ")
	}
	if !meta.IsStatusConditionTrue(status.Conditions, appsv1beta1.ConditionReady) || len(status.Blockers) > 0 ||
		status.CurrentRevision != status.UpdateRevision && replicas > 0 || status.ObservedGeneration != set.Generation {
		say("status says: %s, blockers %v, revisions %s and %s", conditionWords(set), status.Blockers, status.CurrentRevision, status.UpdateRevision)
	}
	return strings.Join(missing, "; ")
}
