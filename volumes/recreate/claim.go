// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// snapshotGroup is the API group of snapshots.
const snapshotGroup = "snapshot.storage.k8s.io"

// newHeldState returns what is noted on the volume of a claim before the claim is
// deleted.
func newHeldState(claim *corev1.PersistentVolumeClaim, volume *Volume, owner types.UID, a Attempt) *appsv1beta1.HeldVolumeState {
	policy := volume.Spec.PersistentVolumeReclaimPolicy
	if volume.State != nil {
		policy = volume.State.ReclaimPolicy // it was held before
	}
	annotations := maps.Clone(claim.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return isOfClaimOnly(key) })
	return &appsv1beta1.HeldVolumeState{
		Namespace: claim.Namespace, Claim: claim.Name, ClaimUID: claim.UID, OwnerUID: owner,
		Recreate: a, ReclaimPolicy: policy, Failure: whyGivenBack(claim, a),
		Labels: claim.Labels, Annotations: annotations,
		HeldVolumes: volumes.RecordOf(claim).HeldVolumes,
	}
}

// whyGivenBack returns the failure for which the operator, and no user, gives an earlier
// volume back to a claim; nil if there is none.
func whyGivenBack(claim *corev1.PersistentVolumeClaim, a Attempt) *Failure {
	if failed := volumes.RecordOf(claim).RecreateFailure; failed != nil && failed.Reason == ReasonClaimRewritten && a.Pod == "" {
		return failed
	}
	return nil
}

// isOfClaimOnly reports whether an annotation speaks of one claim and its volume, and
// not of the next one of its name.
func isOfClaimOnly(key string) bool {
	switch key {
	case appsv1beta1.VolumeClaimUpdateStateKey, appsv1beta1.UndoRecreateAnnotation, appsv1beta1.BeginEmptyAnnotation, appsv1beta1.RestoredFromAnnotation,
		appsv1beta1.RestoreFromAnnotation, appsv1beta1.RestoreMissingAnnotation, corev1.LastAppliedConfigAnnotation:
		return true
	}
	prefix, _, _ := strings.Cut(key, "/")
	return prefix == "pv.kubernetes.io" || prefix == "volume.kubernetes.io" || prefix == "volume.beta.kubernetes.io"
}

// newClaim returns the claim that is recreated from a snapshot, or empty.
func (f Facts) newClaim(held *Volume) *corev1.PersistentVolumeClaim {
	claim := f.renewed(held)
	switch class := held.Spec.StorageClassName; {
	case volumes.NamesClass(f.Template):
		// It may name the class by an annotation, which is of the template only.
		claim.Spec.StorageClassName = ptr.To(volumehelpers.GetPersistentVolumeClaimClass(f.Template))
	case class != "":
		claim.Spec.StorageClassName = &class // and not what the default has become
	}
	if held.State.Recreate.Source == appsv1beta1.SnapshotRecreateSource {
		restoreFrom(claim, f.Snapshot, held.Spec.Capacity[corev1.ResourceStorage])
		if claim.Spec.VolumeAttributesClassName == nil {
			claim.Spec.VolumeAttributesClassName = held.Spec.VolumeAttributesClassName // no class is taken off a claim
		}
	}
	if node := held.State.Recreate.Node; node != "" {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnSelectedNode, node)
	}
	setRecord(claim, volumes.Record{HeldVolumes: heldBefore(held), MadeFor: madeFor(f.Template)})
	return claim
}

// claimOn returns the claim that has a volume back.
func (f Facts) claimOn(held, target *Volume) *corev1.PersistentVolumeClaim {
	claim, state := f.renewed(held), held.State
	onVolume(claim, target)
	claim.Spec.VolumeName = target.Name
	// Nothing of the template says where to take the volume from.
	claim.Spec.DataSource, claim.Spec.DataSourceRef, claim.Spec.Selector = nil, nil, nil
	record := volumes.Record{GivenBack: true, RecreateFailure: state.Failure, HeldVolumes: state.HeldVolumes}
	if target.Name != held.Name {
		record.HeldVolumes = slices.DeleteFunc(settled(heldBefore(held)), func(entry appsv1beta1.HeldVolume) bool { return entry.Name == target.Name })
		if record.RecreateFailure == nil {
			record.RecreateFailure = f.undone(state.Recreate, state.Recreate.StartTimestamp.Time)
		}
	}
	setRecord(claim, record)
	return claim
}

// renewed returns the claim of the template with what users have put on the one before.
func (f Facts) renewed(held *Volume) *corev1.PersistentVolumeClaim {
	claim, state := f.Template.DeepCopy(), held.State
	maps.DeleteFunc(claim.Annotations, func(key, _ string) bool { return isOfClaimOnly(key) })
	claim.Labels = merged(state.Labels, claim.Labels)
	claim.Annotations = merged(state.Annotations, claim.Annotations)
	return claim
}

func merged(before, now map[string]string) map[string]string {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, now)
	return all
}

// heldBefore returns the held volumes of a claim that takes the place of the one
// that a volume was taken from.
func heldBefore(held *Volume) []appsv1beta1.HeldVolume {
	a := held.State.Recreate
	return append([]appsv1beta1.HeldVolume{{Name: held.Name, Number: a.Number, Source: a.Source, Snapshot: a.Snapshot}}, held.State.HeldVolumes...)
}

// claimOf returns the claim that a volume would be, for a comparison.
func claimOf(held *Volume, template *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	onVolume(claim, held)
	return claim
}

// onVolume makes a claim one that a volume can be bound to.
func onVolume(claim *corev1.PersistentVolumeClaim, volume *Volume) {
	delete(claim.Annotations, corev1.BetaStorageClassAnnotation)
	claim.Spec.StorageClassName = ptr.To(volumehelpers.GetPersistentVolumeClass(volume.PersistentVolume))
	claim.Spec.VolumeMode = volume.Spec.VolumeMode
	claim.Spec.VolumeAttributesClassName = volume.Spec.VolumeAttributesClassName
	if !sets.New(volume.Spec.AccessModes...).IsSuperset(sets.New(claim.Spec.AccessModes...)) {
		claim.Spec.AccessModes = volume.Spec.AccessModes
	}
	setRequest(claim, volume.Spec.Capacity[corev1.ResourceStorage])
}

// restoreFrom makes a claim one that starts with what is in a snapshot. A claim that asks
// for less than the snapshot restores to would never be bound. The claim is also no smaller
// than size, that of the volume of which the snapshot was taken: restoreSize may be less.
//
// Source: https://kubernetes.io/docs/concepts/storage/volume-snapshots/
func restoreFrom(claim *corev1.PersistentVolumeClaim, snapshot *snapshotv1.VolumeSnapshot, size resource.Quantity) {
	if told := snapshot.Status.RestoreSize; told != nil && told.Cmp(size) > 0 {
		size = *told
	}
	if request := claim.Spec.Resources.Requests[corev1.ResourceStorage]; request.Cmp(size) < 0 {
		setRequest(claim, size)
	}
	claim.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: ptr.To(snapshotGroup), Kind: "VolumeSnapshot", Name: snapshot.Name}
	claim.Spec.DataSourceRef = nil
}

func setRequest(claim *corev1.PersistentVolumeClaim, size resource.Quantity) {
	requests := maps.Clone(claim.Spec.Resources.Requests)
	if requests == nil {
		requests = corev1.ResourceList{}
	}
	requests[corev1.ResourceStorage] = size
	claim.Spec.Resources.Requests = requests
	if limit, limited := claim.Spec.Resources.Limits[corev1.ResourceStorage]; limited && limit.Cmp(size) < 0 {
		claim.Spec.Resources.Limits = nil
	}
}

func setRecord(claim *corev1.PersistentVolumeClaim, record volumes.Record) {
	text, _ := json.Marshal(record) // strings, numbers and times
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, appsv1beta1.VolumeClaimUpdateStateKey, string(text))
}

// newSnapshot returns a snapshot of the claim.
func (f Facts) newSnapshot(name, class string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.Claim.Namespace, Name: name,
			Labels:      map[string]string{appsv1beta1.ClaimLabel: LabelValue(f.Claim.Name)},
			Annotations: map[string]string{appsv1beta1.RecreateOfAnnotation: string(f.Claim.UID)},
		},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &f.Claim.Name},
			VolumeSnapshotClassName: &class,
		},
	}
}

// snapshotError returns what the driver says of a snapshot; empty if nothing.
func snapshotError(snapshot *snapshotv1.VolumeSnapshot) string {
	if snapshot == nil || snapshot.Status == nil || snapshot.Status.Error == nil {
		return ""
	}
	return ptr.Deref(snapshot.Status.Error.Message, "")
}

// LabelValue returns a name as the value of a label: one that is too long is cut,
// and ends in a hash of the whole.
func LabelValue(name string) string { return shorten(name, validation.LabelValueMaxLength) }

func shorten(name string, length int) string {
	if len(name) <= length {
		return name
	}
	hash := hashOf(name)
	return strings.TrimRight(name[:length-len(hash)-1], "-.") + "-" + hash
}

// hashOf returns a short hash that can be part of a name.
func hashOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:5])
}
