// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes/recreate"
)

// answer lets the user decide what the status asks: whether a claim is to have the data of
// a volume that is held, which the operator does not decide.
func (w *World) answer() {
	set, is := w.server.objects[w.setKey()].(*appsv1beta1.StatefulSet)
	if w.storage == nil || !is || w.isEnding() {
		return
	}
	for _, blocker := range set.Status.Blockers {
		name, _, found := strings.Cut(strings.TrimPrefix(blocker.Message, "claim "), ":")
		claim, exists := get[*corev1.PersistentVolumeClaim](w.server, name)
		switch {
		case !found:
		case blocker.Reason == recreate.ReasonVolumeNotRestored && exists && claim.Annotations[appsv1beta1.UndoRecreateAnnotation] == "":
			w.undo(name, appsv1beta1.UndoRecreatePrevious)
		case blocker.Reason == recreate.ReasonHeldForAnother && !w.settings.wider.again.claimsGo:
			w.takeOver(name, set)
		case blocker.Reason == recreate.ReasonHeldForAnother && !exists:
			w.beginEmpty(name)
		}
	}
}

// takeOver gives what is held for a claim to the set.
func (w *World) takeOver(claim string, set *appsv1beta1.StatefulSet) {
	for name := range w.storage.disks {
		held := heldState(w, name)
		if pv := w.storage.volumeNamed(name); held != nil && held.Claim == claim && pv.Annotations[appsv1beta1.TakeOverAnnotation] != string(set.UID) {
			w.say("user: gives volume %s to the set", name)
			mutate(w.server, name, func(pv *corev1.PersistentVolume) {
				metav1.SetMetaDataAnnotation(&pv.ObjectMeta, appsv1beta1.TakeOverAnnotation, string(set.UID))
			})
		}
	}
}

// beginEmpty creates a claim that is to begin without what is held for it.
func (w *World) beginEmpty(name string) {
	template, _ := splitClaim(name)
	claim := w.claimByHand(name)
	if said := w.law.claimTemplates()[template]; said != nil {
		claim.Spec = *said.Spec.DeepCopy()
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, appsv1beta1.BeginEmptyAnnotation, "true")
	expected := w.law.data.expected[name]
	w.law.data.expected[name] = nil
	w.law.data.discard(name, expected)
	w.makeByHand(claim, labeled)
}
