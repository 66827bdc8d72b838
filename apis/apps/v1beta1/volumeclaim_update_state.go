// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeClaimUpdateState is what the operator noted on a claim when it changed it
// last. It is the JSON value of the claim's annotation VolumeClaimUpdateStateKey,
// and is written in the same request as the change that it describes.
//
// +kubebuilder:object:generate=true
type VolumeClaimUpdateState struct {
	// size is the request that the claim was changed to; absent if it was not.
	Size *resource.Quantity `json:"size,omitempty"`
	// sizeTimestamp is when, on the manager's clock, to the second.
	SizeTimestamp metav1.Time `json:"sizeTimestamp,omitzero"`
	// attributesClass is the VolumeAttributesClass that the claim was changed to;
	// absent if it was not.
	AttributesClass string `json:"attributesClass,omitempty"`
	// attributesClassTimestamp is when.
	AttributesClassTimestamp metav1.Time `json:"attributesClassTimestamp,omitzero"`
	// inUseTimestamp is when the driver was found not to expand the volume while a
	// pod uses it.
	InUseTimestamp *metav1.Time `json:"inUseTimestamp,omitempty"`
	// detachTimestamp is when the pod was deleted for the volume to grow to size.
	DetachTimestamp *metav1.Time `json:"detachTimestamp,omitempty"`
	// detachedPod is the UID of that pod.
	DetachedPod types.UID `json:"detachedPod,omitempty"`

	// recreate is how the claim is being recreated; absent if it is not.
	Recreate *VolumeClaimRecreateState `json:"recreate,omitempty"`
	// recreateFailure is why the claim was not recreated the last time; absent if
	// nothing failed. It is not tried again as long as what is wanted stays the same.
	RecreateFailure *VolumeClaimRecreateFailure `json:"recreateFailure,omitempty"`
	// givenBack is true for a claim that has an earlier volume back, until nothing is
	// left of what held that.
	GivenBack bool `json:"givenBack,omitempty"`
	// heldVolumes are the volumes that the claim has had before, the last one first.
	HeldVolumes []HeldVolume `json:"heldVolumes,omitempty"`
	// madeFor is a hash of what the template said of storage class, volume mode and
	// access modes when the operator recreated the claim; absent for all others. If the
	// template still says so and the claim differs, admission has changed the claim.
	MadeFor string `json:"madeFor,omitempty"`
}

// VolumeClaimRecreateSource is what a claim is recreated from.
type VolumeClaimRecreateSource string

const (
	// SnapshotRecreateSource is a snapshot of the claim itself.
	SnapshotRecreateSource VolumeClaimRecreateSource = "Snapshot"
	// EmptyRecreateSource is nothing: the data stays in the held volume.
	EmptyRecreateSource VolumeClaimRecreateSource = "Empty"
	// VolumeRecreateSource is a volume that the claim has had before.
	VolumeRecreateSource VolumeClaimRecreateSource = "Volume"
)

// VolumeClaimRecreateState is one recreation of a claim. It is noted on the claim
// before its pod is stopped, and on its volume before the claim is deleted.
//
// +kubebuilder:object:generate=true
type VolumeClaimRecreateState struct {
	// number counts the recreations of claims of this name, from 1.
	Number int64 `json:"number"`
	// source is what the new claim is made from.
	Source VolumeClaimRecreateSource `json:"source"`
	// claimUID is the UID of the claim: an attempt that was copied from another one means
	// nothing.
	ClaimUID types.UID `json:"claimUID,omitempty"`
	// snapshot is the name of the snapshot, for source Snapshot.
	Snapshot string `json:"snapshot,omitempty"`
	// trial is the name of the snapshot that is taken before, while the pod still runs:
	// a driver that fails to take it stops no pod. Absent where none is taken.
	Trial string `json:"trial,omitempty"`
	// trialClaim is the name of the claim that is restored from that snapshot while the
	// pod still runs, and then deleted; absent where nothing is restored on trial.
	TrialClaim string `json:"trialClaim,omitempty"`
	// triedTimestamp is when the trial had succeeded.
	TriedTimestamp *metav1.Time `json:"triedTimestamp,omitempty"`
	// node is the node of the pod, where the new storage class waits for a consumer: the
	// new volume is made there. Absent for other classes.
	Node string `json:"node,omitempty"`
	// snapshotClass is the name of the VolumeSnapshotClass of both.
	SnapshotClass string `json:"snapshotClass,omitempty"`
	// volume is the name of the volume, for source Volume.
	Volume string `json:"volume,omitempty"`
	// key tells what is wanted: a hash of the template and of the strategy.
	Key string `json:"key,omitempty"`
	// pod is the UID of the pod that was stopped for it; absent as long as it runs.
	Pod types.UID `json:"pod,omitempty"`
	// startTimestamp is when it was begun and, with pod, when that was stopped, on the
	// manager's clock, to the second.
	StartTimestamp metav1.Time `json:"startTimestamp,omitzero"`
	// graceSeconds is how long the pod was given to stop.
	GraceSeconds int64 `json:"graceSeconds,omitempty"`
	// stoppedTimestamp is when nothing used the volume any more.
	StoppedTimestamp *metav1.Time `json:"stoppedTimestamp,omitempty"`
	// watchedTimestamp is when the manager last noted that nothing used the volume: what
	// uses it while no manager watches is not known.
	WatchedTimestamp *metav1.Time `json:"watchedTimestamp,omitempty"`
	// abandoned is why it was given up; absent if it was not.
	Abandoned string `json:"abandoned,omitempty"`
}

// VolumeClaimRecreateFailure is why a claim was not recreated.
//
// +kubebuilder:object:generate=true
type VolumeClaimRecreateFailure struct {
	// key tells what was wanted.
	Key string `json:"key"`
	// reason says why in one word.
	Reason string `json:"reason"`
	// message says why.
	Message string `json:"message,omitempty"`
	// timestamp is when.
	Timestamp metav1.Time `json:"timestamp,omitzero"`
}

// HeldVolume is a volume that a claim has had before.
//
// +kubebuilder:object:generate=true
type HeldVolume struct {
	// name is the name of the volume.
	Name string `json:"name"`
	// number is that of the recreation that replaced it.
	Number int64 `json:"number"`
	// source is what its successor was made from. Only a volume of which there was a
	// snapshot is ever deleted.
	Source VolumeClaimRecreateSource `json:"source"`
	// notRestored is true while the claim has nothing of what is in the volume: another
	// client created the claim, or admission changed it. The pod is kept away until a user says
	// whether to have the volume back.
	NotRestored bool `json:"notRestored,omitempty"`
	// snapshot is the name of the snapshot that replaced it, while that is kept.
	Snapshot string `json:"snapshot,omitempty"`
	// sinceTimestamp is when the pod was first ready without it; absent until then.
	SinceTimestamp *metav1.Time `json:"sinceTimestamp,omitempty"`
}

// HeldVolumeState is what the operator noted on a volume that a claim was taken
// from. It is the JSON value of the volume's annotation HeldVolumeStateKey.
//
// As long as provedTimestamp is absent, it is the one place that tells what a
// missing claim is to be made from.
//
// +kubebuilder:object:generate=true
type HeldVolumeState struct {
	// namespace and claim name the claim.
	Namespace string `json:"namespace"`
	Claim     string `json:"claim"`
	// claimUID is the UID of the claim that was deleted.
	ClaimUID types.UID `json:"claimUID"`
	// ownerUID is the UID of the workload whose pod had the claim. Another workload, also
	// one of the same name, does not get the volume unless a user says so, see
	// TakeOverAnnotation. Volumes on which it is absent were held by an earlier version, and go
	// by names.
	OwnerUID types.UID `json:"ownerUID,omitempty"`
	// recreate is how the claim is recreated.
	Recreate VolumeClaimRecreateState `json:"recreate"`
	// failure is why the claim gets this volume back; absent if it does not.
	Failure *VolumeClaimRecreateFailure `json:"failure,omitempty"`
	// reclaimPolicy is what the volume's persistentVolumeReclaimPolicy was.
	ReclaimPolicy corev1.PersistentVolumeReclaimPolicy `json:"reclaimPolicy"`
	// labels and annotations are those of the claim that the new one gets again.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// heldVolumes are those that were on the claim.
	HeldVolumes []HeldVolume `json:"heldVolumes,omitempty"`
	// restarts is how often a claim was deleted that had no volume yet, to be created again,
	// and restartedClaim is the UID of the last one.
	Restarts       int32     `json:"restarts,omitempty"`
	RestartedClaim types.UID `json:"restartedClaim,omitempty"`
	// refusedTimestamp is when the API server first refused the new claim; absent if it did
	// not.
	RefusedTimestamp *metav1.Time `json:"refusedTimestamp,omitempty"`
	// provedTimestamp is when the pod was first ready on its new claim.
	ProvedTimestamp *metav1.Time `json:"provedTimestamp,omitempty"`
}
