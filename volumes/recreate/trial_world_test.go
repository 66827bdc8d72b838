// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// What there is of the claim to which a snapshot is restored on trial, and what others
// make of it.

// createTrialClaim is what the API server makes of the claim.
func (s *storage) createTrialClaim(claim *corev1.PersistentVolumeClaim) {
	s.trial = claim.DeepCopy()
	if s.admission != nil {
		s.admission(s.trial)
	}
	s.trial.UID, s.trial.CreationTimestamp = types.UID(s.next("trial-claim")), metav1.NewTime(s.now)
	s.trial.Status.Phase = corev1.ClaimPending
}

// syncTrial is the provisioner, and the garbage collector: the claim goes with its pod.
func (s *storage) syncTrial() bool {
	if s.trial == nil {
		return false
	}
	if owners := s.trial.OwnerReferences; len(owners) == 1 && (s.pod == nil || s.pod.uid != owners[0].UID) {
		delete(s.stored, s.trial.Spec.VolumeName) // a class may retain it; nothing was ever written to it
		s.deleteTrialClaim()
		return true
	}
	snapshot := s.snapshots[dataSource(s.trial)]
	isWaiting := s.lazy && s.trial.Annotations["volume.kubernetes.io/selected-node"] == ""
	if s.trial.Status.Phase == corev1.ClaimBound || isWaiting || snapshot == nil || !IsReady(snapshot.VolumeSnapshot) {
		return false
	}
	if s.stuckOnTrial {
		s.complain(s.trial)
		return false
	}
	name := s.next("trial-pv")
	policy := corev1.PersistentVolumeReclaimDelete
	if s.retains {
		policy = corev1.PersistentVolumeReclaimRetain
	}
	s.stored[name] = &storedVolume{PersistentVolume: &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(s.now)},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName:              ptr.Deref(s.trial.Spec.StorageClassName, ""),
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: s.trial.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef:                      &corev1.ObjectReference{Namespace: "default", Name: s.trial.Name, UID: s.trial.UID},
			PersistentVolumeReclaimPolicy: policy,
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound},
	}}
	s.trial.Spec.VolumeName, s.trial.Status.Phase = name, corev1.ClaimBound
	return true
}

// deleteTrialClaim deletes the claim and releases its volume.
func (s *storage) deleteTrialClaim() {
	if v := s.stored[s.trial.Spec.VolumeName]; v != nil {
		v.Status.Phase = corev1.VolumeReleased
	}
	s.trial = nil
}

// observeTrial returns what the controller reads of the trial of an attempt.
func (s *storage) observeTrial(a Attempt, facts *Facts) {
	facts.Trial = s.snapshot(a.Trial)
	if s.trial != nil && s.trial.Name == a.TrialClaim {
		facts.TrialClaim, facts.TrialVolume = s.trial.DeepCopy(), s.volume(s.trial.Spec.VolumeName)
	}
}

// isOfTrial reports whether a volume is that of a claim on trial.
func isOfTrial(volume string) bool { return strings.HasPrefix(volume, "trial-") }
