// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// tidy returns the next step of a claim that has its volume: what was held for it
// is proved, and goes when its time is over.
func (f Facts) tidy(now time.Time) Step {
	if f.Volume != nil && f.Volume.State != nil {
		return f.own()
	}
	record := f.record()
	if record.GivenBack {
		record.GivenBack = false
		return f.note(record, "it has its volume %s back", f.Claim.Spec.VolumeName)
	}
	for _, next := range []func() *Step{f.lock, f.adopt, func() *Step { return f.accept(now) }} {
		if step := next(); step != nil {
			return *step
		}
	}
	until := time.Time{}
	for i := range record.HeldVolumes {
		entry := &record.HeldVolumes[i]
		step := f.discard(record, i, now)
		if entry.SinceTimestamp == nil {
			step = f.prove(record, i, now)
		}
		if step.Action != None {
			return step
		}
		if !step.Until.IsZero() {
			until = earlier(until, step.Until)
		}
	}
	return Step{Until: until}
}

// own returns the next step of a claim whose volume is one that was held, and was
// given back to it: it is as if it had never been taken from it.
func (f Facts) own() Step {
	state := f.Volume.State
	if step := f.dropTrial(state.ClaimUID); step != nil {
		return *step // another client has deleted the claim before its snapshot was ready
	}
	if record := f.record(); !record.GivenBack && len(record.HeldVolumes) == 0 && len(state.HeldVolumes) > 0 {
		record.GivenBack, record.RecreateFailure, record.HeldVolumes = true, state.Failure, state.HeldVolumes
		return f.note(record, "it has its volume %s back, and the volumes before that are held", f.Volume.Name)
	}
	isNeedless := state.Recreate.Volume == f.Volume.Name || f.Strategy.GetRecreate().Snapshot == appsv1beta1.DeleteRecreateRetention
	if isNeedless && isOwnSnapshot(f.Snapshot, state.ClaimUID) && f.Snapshot.DeletionTimestamp == nil {
		step := act(DeleteSnapshot, ReasonClaimRecreating, "it has its volume %s back; snapshot %s is deleted", f.Volume.Name, f.Snapshot.Name)
		step.Snapshot = f.Snapshot
		return step
	}
	step := act(ReleaseVolume, ReasonClaimRecreating, "it has its volume %s back", f.Volume.Name)
	step.Volume, step.State = f.Volume.PersistentVolume, state
	return step
}

// prove returns the step that takes a held volume as replaced, once the pod of
// the claim is ready without it.
func (f Facts) prove(record volumes.Record, i int, now time.Time) Step {
	entry, held := &record.HeldVolumes[i], f.held(record.HeldVolumes[i].Name)
	switch {
	case held == nil && (entry.NotRestored || entry.Snapshot == ""):
		record.HeldVolumes = slices.Delete(slices.Clone(record.HeldVolumes), i, i+1)
		return f.note(record, "volume %s is not held any more", entry.Name)
	case entry.NotRestored, f.isOnOther() && entry.Source != appsv1beta1.EmptyRecreateSource:
		return f.notRestored(record, i, now)
	case f.Pod == nil || !f.Pod.Ready:
		step := pending(wait(ReasonVolumeNotReady, "volume %s is held at least until its pod is ready", entry.Name))
		step.Watched = true
		return step
	case held == nil: // its snapshot goes in its time
		record.HeldVolumes = slices.Clone(record.HeldVolumes)
		record.HeldVolumes[i].SinceTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
		return f.note(record, "its pod is ready; volume %s is not held any more", entry.Name)
	case !held.isProved():
		if step := f.dropTrial(held.State.ClaimUID); step != nil {
			return *step
		}
		state := held.State.DeepCopy()
		state.ProvedTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
		step := act(HoldVolume, ReasonClaimRecreating, "its pod is ready; volume %s is held as oldVolume says", held.Name)
		step.Volume, step.State = held.PersistentVolume, state
		return step
	default:
		record.HeldVolumes = slices.Clone(record.HeldVolumes)
		record.HeldVolumes[i].SinceTimestamp = held.State.ProvedTimestamp
		return f.note(record, "it was recreated, and its pod is ready; volume %s is held", entry.Name)
	}
}

// isOnOther reports whether a claim that was recreated got a volume that was not made for
// it. Kubernetes prefers one that is available to making one, and does not look at the
// snapshot then. It notes on the volume that it has chosen it.
func (f Facts) isOnOther() bool {
	if f.Claim.Spec.DataSource == nil || f.Volume == nil {
		return false
	}
	_, isChosen := f.Volume.Annotations["pv.kubernetes.io/bound-by-controller"]
	return isChosen || f.Volume.CreationTimestamp.Before(&f.Claim.CreationTimestamp)
}

// discard returns the next step of what is kept of a volume that was replaced.
func (f Facts) discard(record volumes.Record, i int, now time.Time) Step {
	entry, strategy := record.HeldVolumes[i], f.Strategy.GetRecreate()
	held, snapshot := f.held(entry.Name), f.Snapshots[entry.Snapshot]
	if !f.isOf(snapshot, held) {
		snapshot = nil
	}
	discards, forgets := isDiscarded(f.Claim, entry, strategy)
	if entry.SinceTimestamp == nil {
		return Step{}
	}
	hasGone := snapshot == nil && (held == nil || entry.Snapshot != "") // a user has deleted or released it
	until := Step{}
	if discards || forgets {
		until.Until = holdEnd(entry, f.Strategy)
	}
	switch isDue := !until.Until.IsZero() && !now.Before(until.Until); {
	case !isDue && hasGone:
		return f.forget(record, i, held == nil)
	case !isDue:
		return until
	case forgets && snapshot != nil && snapshot.DeletionTimestamp == nil:
		step := act(DeleteSnapshot, ReasonClaimRecreating, "its snapshot %s is deleted, as recreate.snapshot says", entry.Snapshot)
		step.Snapshot = snapshot
		return step
	case discards && held != nil:
		return f.discardVolume(record, i, held, hasGone)
	default:
		return f.forget(record, i, held == nil)
	}
}

// discardVolume returns the next step of a held volume that is to go.
func (f Facts) discardVolume(record volumes.Record, i int, held *Volume, hasGone bool) Step {
	switch {
	case !held.isDisposable() && hasGone:
		return f.forget(record, i, false)
	case !held.isDisposable(): // another claim has it
		return Step{}
	case held.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete:
		step := act(DiscardVolume, ReasonClaimRecreating, "its old volume %s is deleted, as recreate.oldVolume says", held.Name)
		step.Volume = held.PersistentVolume
		return step
	default:
		return f.forget(record, i, true)
	}
}

// forget returns the step that notes that a snapshot is not kept any more, and its volume
// neither if that has gone.
func (f Facts) forget(record volumes.Record, i int, volume bool) Step {
	name := record.HeldVolumes[i].Name
	record.HeldVolumes = slices.Clone(record.HeldVolumes)
	if volume {
		record.HeldVolumes = slices.Delete(record.HeldVolumes, i, i+1)
	} else {
		record.HeldVolumes[i].Snapshot = ""
	}
	return f.note(record, "what was held of its volume %s is gone", name)
}

// isOf reports whether a snapshot was taken to recreate a claim from a held volume. If
// a user has deleted the volume, the name of the claim has to do.
func (f Facts) isOf(snapshot *snapshotv1.VolumeSnapshot, held *Volume) bool {
	if held != nil {
		return isOwnSnapshot(snapshot, held.State.ClaimUID)
	}
	return snapshot != nil && snapshot.Annotations[appsv1beta1.RecreateOfAnnotation] != "" && snapshot.Labels[appsv1beta1.ClaimLabel] == LabelValue(f.Claim.Name)
}

// isDiscarded reports whether a held volume and its snapshot are to go when their time is
// over. A volume stays that is the only one with what is in it, and both that a user has
// asked to have back.
func isDiscarded(
	claim *corev1.PersistentVolumeClaim, entry appsv1beta1.HeldVolume, strategy appsv1beta1.VolumeClaimRecreateStrategy,
) (volume, snapshot bool) {
	if entry.Source != appsv1beta1.SnapshotRecreateSource || undoOf(claim) == entry.Name {
		return false, false
	}
	return strategy.OldVolume == appsv1beta1.DeleteRecreateRetention, strategy.Snapshot == appsv1beta1.DeleteRecreateRetention && entry.Snapshot != ""
}

// isDisposable reports whether a held volume may be deleted: the claim has run
// without it, and nothing else has it.
func (v Volume) isDisposable() bool {
	return v.isProved() && v.Status.Phase == corev1.VolumeReleased && v.Spec.ClaimRef != nil && v.Spec.ClaimRef.UID == v.State.ClaimUID
}

// holdEnd returns until when what was replaced is held at least.
func holdEnd(entry appsv1beta1.HeldVolume, strategy appsv1beta1.VolumeClaimUpdateStrategy) time.Time {
	return entry.SinceTimestamp.Add(time.Duration(*strategy.GetRecreate().HoldSeconds) * time.Second)
}

// IsBusy reports whether there may be a step for a claim that exists; what it says is
// what a cache says. It is meant to spare the reading of what Facts needs.
func IsBusy(claim *corev1.PersistentVolumeClaim, strategy appsv1beta1.VolumeClaimUpdateStrategy, now time.Time) (busy bool, until time.Time) {
	record, recreate := volumes.RecordOf(claim), strategy.GetRecreate()
	if record.Recreate != nil || claim.Status.Phase != corev1.ClaimBound && (len(record.HeldVolumes) > 0 || isRestored(claim)) {
		return true, time.Time{}
	}
	if record.GivenBack {
		return true, time.Time{}
	}
	for _, entry := range record.HeldVolumes {
		discards, forgets := isDiscarded(claim, entry, recreate)
		switch {
		case entry.SinceTimestamp == nil:
			return true, time.Time{}
		case !discards && !forgets:
			continue
		}
		if end := holdEnd(entry, strategy); now.Before(end) {
			until = earlier(until, end)
		} else {
			busy = true
		}
	}
	return busy, until
}

func earlier(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
