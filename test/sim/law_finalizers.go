// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// checkKeepers asserts that the operator leaves a volume to all others who hold it.
func (l *law) checkKeepers(w write) {
	before, was := w.before.(*corev1.PersistentVolume)
	if !was {
		return
	}
	left := sets.New(before.Finalizers...).Delete(appsv1beta1.HeldVolumeFinalizer)
	if after, is := get[*corev1.PersistentVolume](l.world.server, before.Name); is {
		left.Delete(after.Finalizers...)
	}
	if left.Len() > 0 {
		l.world.violate("%s takes off what others hold it with: %v", w.words, sets.List(left))
	}
}

// left asserts that a volume is not forgotten as long as nothing else tells what the
// missing claim is made from that it was taken from.
func (d *dataLaw) left(pv *corev1.PersistentVolume) {
	held := &appsv1beta1.HeldVolumeState{}
	if err := json.Unmarshal([]byte(pv.Annotations[appsv1beta1.HeldVolumeStateKey]), held); err != nil || held.ProvedTimestamp != nil {
		return
	}
	claim, there := get[*corev1.PersistentVolumeClaim](d.world.server, held.Claim)
	if !there || claim.Status.Phase != corev1.ClaimBound {
		d.world.violate("volume %s is gone, and claim %s is not recreated yet", pv.Name, held.Claim)
	}
}

// isVolumeDeleted reports whether a user has deleted a volume that is still there.
func (w *World) isVolumeDeleted(name string) bool {
	pv := w.storage.volumeNamed(name)
	return pv != nil && pv.DeletionTimestamp != nil
}

// hasLeft reports whether a disk that a claim once had is there, and its volume is not.
func (s *storage) hasLeft(claim string) bool {
	for _, v := range s.outside {
		if v.claim == claim {
			return true
		}
	}
	return false
}
