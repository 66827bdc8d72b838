// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// Attempt is one recreation of a claim.
type Attempt = appsv1beta1.VolumeClaimRecreateState

// Failure is why a claim was not recreated.
type Failure = appsv1beta1.VolumeClaimRecreateFailure

// Facts is what is known of one claim that is, or was, recreated. All of it is read
// from the API server, not from a cache.
type Facts struct {
	// Claim is nil while it does not exist.
	Claim *corev1.PersistentVolumeClaim
	// Template is the claim as it would be made if there were no other before it.
	Template *corev1.PersistentVolumeClaim
	// Workload and Ordinal name the pod of the claim, and Owner is the UID of the workload.
	Workload string
	Ordinal  int
	Owner    types.UID
	// Strategy says what is to be done.
	Strategy appsv1beta1.VolumeClaimUpdateStrategy
	// Failed is the name of another claim of the template for which the same has failed;
	// empty if there is none.
	Failed string
	// Foreign is true for a claim that belongs to another controller.
	Foreign bool
	// Volume is the volume that the claim is bound to; nil if it is to none.
	Volume *Volume
	// Held are the volumes that were held for claims of this name: of a claim that
	// exists, those that its record names.
	Held []Volume
	// Target is the volume that a claim is to be given back, if there is one to be.
	Target *Volume
	// Snapshot is that of the attempt, and Trial the one that is taken before; nil if it
	// does not exist.
	Snapshot, Trial *snapshotv1.VolumeSnapshot
	// TrialClaim is the claim to which Trial is restored before the pod is stopped, and
	// TrialVolume its volume; nil if they do not exist.
	TrialClaim  *corev1.PersistentVolumeClaim
	TrialVolume *Volume
	// Events are those with the reason ProvisioningFailedEvent of the claim that
	// WaitsForVolume returns.
	Events []corev1.Event
	// Snapshots are those of held volumes, by name.
	Snapshots map[string]*snapshotv1.VolumeSnapshot
	// Users are the names of the pods on nodes that use the claim.
	Users []string
	// Attaches is true where the volume is attached to nodes, and Nodes are those that
	// it is attached to.
	Attaches bool
	Nodes    []string
	// Pod is the pod that the claim was made for; nil while there is none.
	Pod *Pod
	// Refused is what the API server said a moment ago when it refused the claim; empty if
	// it did not. OverQuota is true if a ResourceQuota has no room for it.
	Refused   string
	OverQuota bool
	// Judgement is what Preflight says now; nil where nothing asks for it.
	Judgement *Judgement
}

// Pod is what has to be known of the pod that uses a claim.
type Pod struct {
	UID types.UID
	// Ready: its Ready condition is True, and it stays.
	Ready bool
}

// Volume is a persistent volume, and what was noted on it when it was held.
type Volume struct {
	*corev1.PersistentVolume
	// State is nil for a volume that is not held.
	State *appsv1beta1.HeldVolumeState
}

// NewVolume returns a volume with what was noted on it. It fails for a note that
// cannot be read: what it stands for is not known.
func NewVolume(pv *corev1.PersistentVolume) (Volume, error) {
	text, marked := pv.Annotations[appsv1beta1.HeldVolumeStateKey]
	if !marked {
		return Volume{PersistentVolume: pv}, nil
	}
	state := &appsv1beta1.HeldVolumeState{}
	if err := json.Unmarshal([]byte(text), state); err != nil {
		return Volume{}, fmt.Errorf("read annotation %s of volume %s: %w", appsv1beta1.HeldVolumeStateKey, pv.Name, err)
	}
	return Volume{PersistentVolume: pv, State: state}, nil
}

// IsHeldFor reports whether a volume is held for a claim.
func (v Volume) IsHeldFor(namespace, claim string) bool {
	return v.State != nil && v.State.Namespace == namespace && v.State.Claim == claim
}

// isOf reports whether a held volume may be given to claims of a workload.
func (v Volume) isOf(owner types.UID) bool {
	return v.State.OwnerUID == "" || v.State.OwnerUID == owner || v.Annotations[appsv1beta1.TakeOverAnnotation] == string(owner)
}

// isProved reports whether the pod has been ready without this volume.
func (v Volume) isProved() bool { return v.State.ProvedTimestamp != nil }

// isFree reports whether a held volume can be given back: no other claim has it, and
// its deletion has not begun.
func (v Volume) isFree() bool {
	owner, phase := v.Spec.ClaimRef, v.Status.Phase
	return v.State != nil && v.DeletionTimestamp == nil && v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain &&
		(phase == corev1.VolumeReleased || phase == corev1.VolumeAvailable) &&
		owner != nil && owner.Namespace == v.State.Namespace && owner.Name == v.State.Claim
}

// InFlight returns the held volume that tells what a missing claim is made from: the
// latest that is not proved. It is nil if there is none.
func InFlight(held []Volume) *Volume {
	unproved := slices.DeleteFunc(slices.Clone(held), func(v Volume) bool { return v.isProved() })
	if len(unproved) == 0 {
		return nil
	}
	last := slices.MaxFunc(unproved, func(a, b Volume) int {
		return cmp.Or(
			cmp.Compare(a.State.Recreate.Number, b.State.Recreate.Number),
			a.State.Recreate.StartTimestamp.Compare(b.State.Recreate.StartTimestamp.Time),
		)
	})
	return &last
}

// record returns what was noted on the claim.
func (f Facts) record() volumes.Record { return volumes.RecordOf(f.Claim) }

// isBound reports whether the claim has a volume.
func (f Facts) isBound() bool { return f.Claim.Status.Phase == corev1.ClaimBound }

// held returns a held volume by name.
func (f Facts) held(name string) *Volume {
	for i := range f.Held {
		if f.Held[i].Name == name {
			return &f.Held[i]
		}
	}
	return nil
}

// isOwnSnapshot reports whether a snapshot was taken of a claim with a UID to
// recreate it.
func isOwnSnapshot(snapshot *snapshotv1.VolumeSnapshot, claim types.UID) bool {
	return snapshot != nil && snapshot.Annotations[appsv1beta1.RecreateOfAnnotation] == string(claim)
}

// IsReady reports whether a claim can be made from a snapshot.
func IsReady(snapshot *snapshotv1.VolumeSnapshot) bool {
	return snapshot != nil && snapshot.DeletionTimestamp == nil && snapshot.Status != nil &&
		snapshot.Status.ReadyToUse != nil && *snapshot.Status.ReadyToUse && snapshot.Status.BoundVolumeSnapshotContentName != nil
}

// timeout is how long a snapshot, and a volume made from it, may take.
func (f Facts) timeout() time.Duration {
	return time.Duration(*f.Strategy.GetRecreate().TimeoutSeconds) * time.Second
}
