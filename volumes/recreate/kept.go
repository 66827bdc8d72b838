// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"cmp"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// This file is about what recreations leave behind on purpose. The user pays for it.

// KeptState says why a volume or a snapshot is kept.
type KeptState string

const (
	// KeptNeeded is what its claim is being recreated from, or needs when a user has said what
	// it is to have.
	KeptNeeded KeptState = "Needed"
	// KeptHeld is what goes when holdSeconds are over.
	KeptHeld KeptState = "Held"
	// KeptOverdue is what should have gone by itself when holdSeconds were over.
	KeptOverdue KeptState = "Overdue"
	// KeptRetained is what is kept until a user deletes it, since recreate says so.
	KeptRetained KeptState = "Retained"
	// KeptOnlyCopy is what is kept until a user deletes it, whatever recreate says: nothing
	// else holds all that is in it.
	KeptOnlyCopy KeptState = "OnlyCopy"
	// KeptOrphaned is what no StatefulSet has any more: nothing of Insitu looks at it.
	KeptOrphaned KeptState = "Orphaned"
	// KeptDeleting is what is being deleted.
	KeptDeleting KeptState = "Deleting"
)

// overduePeriod is for how long a driver may take to delete what is to go.
const overduePeriod = 5 * time.Minute

// Kept is a volume that a claim has had before, or a snapshot that was taken to recreate
// it: one of the two.
type Kept struct {
	Volume   *Volume
	Snapshot *snapshotv1.VolumeSnapshot
	// Namespace and Claim name the claim, and ClaimUID is the UID of the one that had the
	// volume.
	Namespace, Claim string
	ClaimUID         types.UID
	// Owner is the UID of the StatefulSet; empty if it is not known.
	Owner types.UID
	// Since is since when it is kept: when the pod was first ready without it, or, until
	// then, when the recreation began.
	Since time.Time
	// Until is when it goes by itself; zero if it does not.
	Until time.Time
	State KeptState
}

// Size is the capacity of a volume, and what a snapshot restores to; zero if that is not
// known. What a snapshot costs is known to its driver only.
func (k Kept) Size() resource.Quantity {
	switch {
	case k.Volume != nil:
		return k.Volume.Spec.Capacity[corev1.ResourceStorage]
	case k.Snapshot.Status != nil:
		return ptr.Deref(k.Snapshot.Status.RestoreSize, resource.Quantity{})
	default:
		return resource.Quantity{}
	}
}

// TakenAt is as of when it has the data of its claim: when nothing wrote to the volume any
// more, or the snapshot was created.
func (k Kept) TakenAt() time.Time {
	if k.Volume == nil {
		return k.Snapshot.CreationTimestamp.Time
	}
	attempt := k.Volume.State.Recreate
	return ptr.Deref(attempt.StoppedTimestamp, attempt.StartTimestamp).Time
}

// IsOnlyCopy reports whether a volume has what was in no snapshot when it was replaced, or
// may be the only one with the data of a claim that was not recreated to its end.
func (k Kept) IsOnlyCopy() bool {
	return k.Volume != nil && (k.Volume.State.Recreate.Source != appsv1beta1.SnapshotRecreateSource || !k.Volume.isProved())
}

// Name is the name of the volume or the snapshot.
func (k Kept) Name() string {
	if k.Volume != nil {
		return k.Volume.Name
	}
	return k.Snapshot.Name
}

// KeptFacts is what has to be known to tell what is kept in a namespace.
type KeptFacts struct {
	// Volumes are those that are held, and Snapshots those that were taken to recreate
	// claims.
	Volumes   []Volume
	Snapshots []snapshotv1.VolumeSnapshot
	// Claim returns a claim of the namespace; nil if it does not exist.
	Claim func(name string) *corev1.PersistentVolumeClaim
	// Strategy returns what the StatefulSet of a volume says, by its UID, or, where that is
	// not known, of a claim; false if it does not exist.
	Strategy func(owner types.UID, claim string) (appsv1beta1.VolumeClaimUpdateStrategy, bool)
}

// Keep returns what is kept, by claim, and volumes before snapshots.
func Keep(f KeptFacts, now time.Time) []Kept {
	var kept []Kept
	for i := range f.Volumes {
		if v := f.Volumes[i]; v.State != nil && !f.isBack(v) {
			kept = append(kept, f.keptVolume(v, now))
		}
	}
	ofVolumes := kept
	for i := range f.Snapshots {
		if one := f.keptSnapshot(&f.Snapshots[i], ofVolumes, now); one != nil {
			kept = append(kept, *one)
		}
	}
	slices.SortStableFunc(kept, func(a, b Kept) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Claim, b.Claim))
	})
	return kept
}

// isBack reports whether a volume was given back to its claim, and is about to be released.
func (f KeptFacts) isBack(v Volume) bool {
	claim := f.Claim(v.State.Claim)
	return claim != nil && claim.Spec.VolumeName == v.Name
}

// isGivenBack reports whether the claim of a volume was deleted to have the volume back.
func (f KeptFacts) isGivenBack(v Volume) bool {
	return slices.ContainsFunc(f.Volumes, func(other Volume) bool {
		return other.State != nil && !other.isProved() && other.IsHeldFor(v.State.Namespace, v.State.Claim) && other.State.Recreate.Volume == v.Name
	})
}

func (f KeptFacts) keptVolume(v Volume, now time.Time) Kept {
	kept := Kept{
		Volume: &v, Namespace: v.State.Namespace, Claim: v.State.Claim, ClaimUID: v.State.ClaimUID, Owner: v.State.OwnerUID,
		Since: v.State.Recreate.StartTimestamp.Time,
	}
	if owner := v.Annotations[appsv1beta1.TakeOverAnnotation]; owner != "" {
		kept.Owner = types.UID(owner)
	}
	if v.isProved() {
		kept.Since = v.State.ProvedTimestamp.Time
	}
	strategy, hasOwner := f.Strategy(kept.Owner, kept.Claim)
	claim := f.Claim(v.State.Claim)
	switch {
	case v.DeletionTimestamp != nil:
		kept.State = KeptDeleting
	case !hasOwner:
		kept.State = KeptOrphaned
	case !v.isProved(), claim != nil && undoOf(claim) == v.Name, f.isGivenBack(v):
		kept.State = KeptNeeded
	case v.State.Recreate.Source != appsv1beta1.SnapshotRecreateSource:
		kept.State = KeptOnlyCopy
	case strategy.GetRecreate().OldVolume != appsv1beta1.DeleteRecreateRetention:
		kept.State = KeptRetained
	default:
		kept.State, kept.Until = keptUntil(kept.Since, strategy, now)
	}
	return kept
}

// keptSnapshot returns nil for a snapshot that was not taken to recreate a claim, or is that
// of a recreation under way.
func (f KeptFacts) keptSnapshot(snapshot *snapshotv1.VolumeSnapshot, ofVolumes []Kept, now time.Time) *Kept {
	of, name := types.UID(snapshot.Annotations[appsv1beta1.RecreateOfAnnotation]), ptr.Deref(snapshot.Spec.Source.PersistentVolumeClaimName, "")
	if of == "" || name == "" {
		return nil
	}
	kept := &Kept{Snapshot: snapshot, Namespace: snapshot.Namespace, Claim: name, ClaimUID: of, Since: snapshot.CreationTimestamp.Time}
	claim := f.Claim(name)
	if claim != nil && claim.UID == of && volumes.RecordOf(claim).Recreate != nil {
		return nil
	}
	entry := entryOf(claim, snapshot.Name)
	i := slices.IndexFunc(ofVolumes, func(v Kept) bool { return v.ClaimUID == of })
	if i >= 0 {
		kept.Owner, kept.Since = ofVolumes[i].Owner, ofVolumes[i].Since
	} else if entry != nil && entry.SinceTimestamp != nil {
		kept.Since = entry.SinceTimestamp.Time
	}
	strategy, hasOwner := f.Strategy(kept.Owner, name)
	switch {
	case snapshot.DeletionTimestamp != nil:
		kept.State = KeptDeleting
	case !hasOwner:
		kept.State = KeptOrphaned
	case i >= 0 && (ofVolumes[i].State == KeptNeeded || !ofVolumes[i].Volume.isProved()), i < 0 && entry != nil && entry.SinceTimestamp == nil:
		kept.State = KeptNeeded
	case strategy.GetRecreate().Snapshot != appsv1beta1.DeleteRecreateRetention:
		kept.State = KeptRetained
	default:
		kept.State, kept.Until = keptUntil(kept.Since, strategy, now)
	}
	return kept
}

// entryOf returns what the record of a claim says of the volume that a snapshot replaced;
// nil if nothing.
func entryOf(claim *corev1.PersistentVolumeClaim, snapshot string) *appsv1beta1.HeldVolume {
	if claim == nil {
		return nil
	}
	entries := volumes.RecordOf(claim).HeldVolumes
	i := slices.IndexFunc(entries, func(entry appsv1beta1.HeldVolume) bool { return entry.Snapshot == snapshot })
	if i < 0 {
		return nil
	}
	return &entries[i]
}

// keptUntil says of what is to go by itself whether that is overdue.
func keptUntil(since time.Time, strategy appsv1beta1.VolumeClaimUpdateStrategy, now time.Time) (KeptState, time.Time) {
	until := since.Add(time.Duration(*strategy.GetRecreate().HoldSeconds) * time.Second)
	if now.After(until.Add(overduePeriod)) {
		return KeptOverdue, until
	}
	return KeptHeld, until
}

// Sum returns what is kept of a list for claims that are chosen; nil if nothing.
func Sum(all []Kept, chosen func(Kept) bool) *appsv1beta1.VolumeClaimKeptStatus {
	sum, capacity, oldest := appsv1beta1.VolumeClaimKeptStatus{}, resource.Quantity{}, time.Time{}
	for _, kept := range all {
		if !chosen(kept) {
			continue
		}
		if kept.Volume != nil {
			sum.Volumes++
			capacity.Add(kept.Size())
		} else {
			sum.Snapshots++
		}
		if kept.State == KeptOverdue {
			sum.Overdue++
		}
		oldest = earlier(oldest, kept.Since)
	}
	if sum.Volumes+sum.Snapshots == 0 {
		return nil
	}
	if sum.Volumes > 0 {
		sum.Capacity = &capacity
	}
	sum.OldestTimestamp = ptr.To(metav1.NewTime(oldest).Rfc3339Copy())
	return &sum
}

// HasGone reports whether something that the record of a claim says to be kept is not
// there any more: a user has deleted or released it.
func HasGone(claim *corev1.PersistentVolumeClaim, held []Volume, snapshots []snapshotv1.VolumeSnapshot) bool {
	return slices.ContainsFunc(volumes.RecordOf(claim).HeldVolumes, func(entry appsv1beta1.HeldVolume) bool {
		if entry.SinceTimestamp == nil {
			return false
		}
		if entry.Snapshot != "" {
			return !slices.ContainsFunc(snapshots, func(s snapshotv1.VolumeSnapshot) bool {
				return s.Name == entry.Snapshot && s.Annotations[appsv1beta1.RecreateOfAnnotation] != ""
			})
		}
		return !slices.ContainsFunc(held, func(v Volume) bool { return v.Name == entry.Name && v.State != nil })
	})
}
