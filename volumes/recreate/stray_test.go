// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// TestStrays: a snapshot is deleted that nothing needs, and none of which that is not certain.
func TestStrays(t *testing.T) {
	type world struct {
		snapshot *snapshotv1.VolumeSnapshot
		claim    *corev1.PersistentVolumeClaim
		record   volumes.Record
	}
	for name, test := range map[string]struct {
		change func(*world)
		stray  bool
	}{
		"the recreation was given up":  {func(*world) {}, true},
		"the recreation is under way":  {func(w *world) { w.record.Recreate = &Attempt{Number: 2} }, false},
		"there is no claim":            {func(w *world) { w.claim = nil }, false},
		"the claim is being deleted":   {func(w *world) { w.claim.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }, false},
		"the claim has no volume":      {func(w *world) { w.claim.Status.Phase = corev1.ClaimPending }, false},
		"a user made it":               {func(w *world) { w.snapshot.Annotations = nil }, false},
		"it has no label of the claim": {func(w *world) { w.snapshot.Labels = nil }, false},
		"it is of another claim":       {func(w *world) { w.snapshot.Spec.Source.PersistentVolumeClaimName = ptr.To("data-other-0") }, false},
		"it is being deleted":          {func(w *world) { w.snapshot.DeletionTimestamp = ptr.To(metav1.NewTime(start)) }, false},
		"the claim was recreated from it": {func(w *world) {
			w.claim.UID, w.record.HeldVolumes = "new", []appsv1beta1.HeldVolume{{Name: "pv-1", Snapshot: "snap"}}
		}, false},
		"the claim was recreated, and it is kept": {func(w *world) { w.claim.UID = "new" }, false},
		"the claim was recreated, and it is the first one": {func(w *world) {
			w.claim.UID, w.snapshot.Name, w.record.HeldVolumes = "new", "snap-trial", []appsv1beta1.HeldVolume{{Name: "pv-1", Snapshot: "snap"}}
		}, true},
		"it is the first one of a recreation under way": {func(w *world) {
			w.claim.UID, w.snapshot.Name, w.record.Recreate = "new", "snap-trial", &Attempt{Number: 2, Trial: "snap-trial"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{
				snapshot: &snapshotv1.VolumeSnapshot{
					ObjectMeta: metav1.ObjectMeta{
						Name: "snap", Labels: map[string]string{appsv1beta1.ClaimLabel: claimName}, Annotations: map[string]string{appsv1beta1.RecreateOfAnnotation: "own"},
					},
					Spec: snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To(claimName)}},
				},
				claim: &corev1.PersistentVolumeClaim{
					ObjectMeta: metav1.ObjectMeta{Name: claimName, UID: "own"}, Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
				},
			}
			test.change(w)
			if w.claim != nil {
				if w.record.Recreate != nil {
					w.record.Recreate.ClaimUID = w.claim.UID
				}
				setRecord(w.claim, w.record)
			}
			NewWithT(t).Expect(IsStray(w.snapshot, w.claim)).To(Equal(test.stray))
		})
	}
}
