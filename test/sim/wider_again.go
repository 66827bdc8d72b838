// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// The set is deleted, and made again under its name as soon as it is gone: as kubectl
// replace --force does, and tools that apply what is missing.

// again are the settings of that. The zero value is a set that stays.
type again struct {
	on bool
	// claimsGo: the claims of a StatefulSet go when it is deleted.
	claimsGo bool
}

func chosenAgain(c *Choices) again {
	return again{on: c.oneIn(2), claimsGo: c.oneIn(3)}
}

// fill writes what becomes of claims into a set.
func (a again) fill(set *appsv1beta1.StatefulSet) {
	if !a.claimsGo {
		return
	}
	policy := ptr.Deref(set.Spec.PersistentVolumeClaimRetentionPolicy, appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	policy.WhenDeleted = appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType
	set.Spec.PersistentVolumeClaimRetentionPolicy = &policy
}

// cascade is what becomes of the pods of a set that is deleted.
type cascade string

const (
	// inBackground: the set is gone at once, and its pods and revisions are deleted then.
	inBackground cascade = "background"
	// inForeground: the set is gone after them.
	inForeground cascade = metav1.FinalizerDeleteDependents
	// orphaning: they lose their owner, and stay.
	orphaning cascade = metav1.FinalizerOrphanDependents
)

var cascades = []cascade{inBackground, inForeground, orphaning}

var againDisturbances = []disturbance{
	{"set deleted and made again", func(w *World) { w.remake(pick(w.choices, cascades), w.choices.seconds(20)) }, 3},
}

// remake deletes the set, which is made again as soon as it is gone. The garbage
// collector takes a while until it acts.
func (w *World) remake(how cascade, collectsAfter time.Duration) {
	if w.isEnding() {
		return
	}
	w.say("user: deletes the set (%s), to make it again; garbage is collected after %s", how, collectsAfter)
	w.server.collectsAt = w.clock.Now().Add(collectsAfter)
	if how == inBackground {
		w.makeAgain()
		return
	}
	set := w.server.objects[w.setKey()].DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	set.SetFinalizers([]string{string(how)})
	w.server.store(w.setKey(), set)
	w.server.finish(w.setKey())
}

// isEnding reports whether the set is being deleted.
func (w *World) isEnding() bool {
	set := w.server.objects[w.setKey()]
	return set != nil && isGoing(set)
}

// makeAgain removes the set, and makes it again.
func (w *World) makeAgain() {
	set := w.server.objects[w.setKey()].DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	w.server.remove(w.setKey())
	set.SetDeletionTimestamp(nil)
	set.SetFinalizers(nil)
	if err := w.server.create(set); err != nil {
		w.violate("make the set again: %w", err)
	}
	w.say("user: makes the set again")
}

// stepEnding is one second of the garbage collector with a set that is being deleted: it
// deletes what belongs to it, or takes the set from that, some of it at a time.
func (w *World) stepEnding() {
	set := w.server.objects[w.setKey()]
	if !w.isEnding() || w.clock.Now().Before(w.server.collectsAt) {
		return
	}
	dependents := slices.DeleteFunc(w.server.keys(), func(key objectKey) bool { return !hasOwner(w.server.objects[key], set) })
	if len(dependents) == 0 {
		w.makeAgain()
		return
	}
	for i, key := range dependents {
		switch {
		case i > 0 && w.choices.oneIn(2): // later
		case set.GetFinalizers()[0] == string(orphaning):
			w.server.disown(key, set.GetUID())
		case !isGoing(w.server.objects[key]):
			w.law.data.collected(w.server.objects[key])
			_ = w.server.delete(key, nil) // it is there: it was just seen
		}
	}
}

func hasOwner(obj, owner client.Object) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() })
}

func isGoing(obj client.Object) bool { return obj.GetDeletionTimestamp() != nil }

// collected asserts that the garbage collector deletes no claim unless the user said
// that claims go with the set, or with pods.
func (d *dataLaw) collected(obj client.Object) {
	claim, is := obj.(*corev1.PersistentVolumeClaim)
	s := d.world.settings
	if !is || s.clones.is() || isOnTrial(claim) {
		return
	}
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == d.world.setKey().kind && !s.wider.again.claimsGo || owner.Kind == "Pod" && !s.deleteScaled {
			d.world.violate("data: claim %s is deleted with %s %s, and the user did not ask for that", claim.Name, owner.Kind, owner.Name)
		}
	}
}
