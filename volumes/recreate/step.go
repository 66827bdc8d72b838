// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// Action is what a step writes. Each is one write.
type Action string

// The actions.
const (
	// None: there is nothing to do.
	None Action = ""
	// Wait: others are at work.
	Wait Action = "Wait"
	// Note: write Step.Record to the claim.
	Note Action = "Note"
	// CreateSnapshot: create Step.Snapshot.
	CreateSnapshot Action = "CreateSnapshot"
	// DeleteSnapshot: delete Step.Snapshot.
	DeleteSnapshot Action = "DeleteSnapshot"
	// HoldVolume: set Step.Volume to Retain, and note Step.State on it.
	HoldVolume Action = "HoldVolume"
	// ReleaseVolume: take what was noted off Step.Volume, and give it the reclaim
	// policy back that it had.
	ReleaseVolume Action = "ReleaseVolume"
	// FreeVolume: let a claim of the name have Step.Volume.
	FreeVolume Action = "FreeVolume"
	// LockVolume: let no other claim have Step.Volume any more.
	LockVolume Action = "LockVolume"
	// DiscardVolume: set Step.Volume to Delete.
	DiscardVolume Action = "DiscardVolume"
	// DeleteClaim: delete the claim.
	DeleteClaim Action = "DeleteClaim"
	// CreateClaim: create Step.Claim.
	CreateClaim Action = "CreateClaim"
	// CreateTrialClaim: create Step.Claim, to which a snapshot is restored on trial.
	CreateTrialClaim Action = "CreateTrialClaim"
	// DeleteTrialClaim: delete Step.Claim, which is that.
	DeleteTrialClaim Action = "DeleteTrialClaim"
)

// Reasons of steps.
const (
	// ReasonClaimRecreating: the claim is being recreated.
	ReasonClaimRecreating = "ClaimRecreating"
	// ReasonVolumeAttached: the volume is still attached to a node.
	ReasonVolumeAttached = "VolumeAttached"
	// ReasonClaimInUse: pods use the claim.
	ReasonClaimInUse = "ClaimInUse"
	// ReasonSnapshotNotReady: the snapshot is being taken.
	ReasonSnapshotNotReady = "SnapshotNotReady"
	// ReasonVolumeNotReady: the new volume is being made.
	ReasonVolumeNotReady = "VolumeNotReady"
	// ReasonVolumeNotRestored: the claim got another volume than one from its snapshot.
	ReasonVolumeNotRestored = "VolumeNotRestored"
	// ReasonHeldForAnother: the volume that the claim would be recreated from is held for
	// another workload of the same name.
	ReasonHeldForAnother = "HeldForAnother"
	// ReasonClaimRewritten: admission made another claim of the one that was asked for.
	ReasonClaimRewritten = "ClaimRewritten"
	// ReasonRecreateTimedOut: the snapshot, or the volume made from it, took longer
	// than recreate.timeoutSeconds.
	ReasonRecreateTimedOut = "RecreateTimedOut"
	// ReasonDriverFails: the driver fails to take the snapshot, or to make the volume, and
	// has repeated the same error for five minutes.
	ReasonDriverFails = "DriverFails"
	// ReasonSnapshotLost: the snapshot is gone before a volume was made from it.
	ReasonSnapshotLost = "SnapshotLost"
	// ReasonSnapshotTaken: a snapshot of another client has the name already.
	ReasonSnapshotTaken = "SnapshotNameTaken"
	// ReasonRecreateUndone: the claim has its old volume back, as asked.
	ReasonRecreateUndone = "RecreateUndone"
	// ReasonVolumeLost: the volume that is to be given back is not there, or belongs to
	// another claim.
	ReasonVolumeLost = "VolumeLost"
)

// Step is the next step of one claim.
type Step struct {
	Action Action
	// Reason and Message say what is done or waited for; empty for None.
	Reason, Message string
	// Until is when time alone changes the step; zero if it does not.
	Until time.Time
	// PodMayRun is true where the pod can be made meanwhile: its claim exists.
	PodMayRun bool
	// Watched is true for a step that a change of the claim or of its pod ends.
	Watched bool
	// Failed is true for the step with which a recreation is given up.
	Failed bool

	// The objects of the actions, see there.
	Record   volumes.Record
	Snapshot *snapshotv1.VolumeSnapshot
	Volume   *corev1.PersistentVolume
	State    *appsv1beta1.HeldVolumeState
	Claim    *corev1.PersistentVolumeClaim
}

// unstagePeriod is how long a node is given to write out and unmount a volume whose pod is
// gone, where no VolumeAttachment tells when it has. A loaded node was seen to take 7 s.
const unstagePeriod = 20 * time.Second

// Next returns the next step of a claim. It is None for one that is not being
// recreated, and of which nothing is left to be tidied up.
func Next(f Facts, now time.Time) Step { return f.next(now).at(now) }

func (f Facts) next(now time.Time) Step {
	switch {
	case f.Claim == nil:
		return f.renew(now)
	case f.Claim.DeletionTimestamp != nil:
		return f.awaitDeletion()
	case f.record().Recreate != nil:
		return f.attempt(*f.record().Recreate, now)
	case !f.isBound():
		return f.awaitVolume(now)
	default:
		return f.tidy(now)
	}
}

// awaitDeletion returns the next step of a claim that is being deleted. If another
// client deleted it while its pod runs, nothing comes of what was begun. If a pod came in
// between, what it writes is in no snapshot: the claim is to have its volume back.
func (f Facts) awaitDeletion() Step {
	record := f.record()
	if a := record.Recreate; a != nil && runsItsPod(*a) {
		if step := f.dropTrial(f.Claim.UID); step != nil {
			return *step
		}
		record.Recreate = nil
		return f.note(record, "it is deleted by another client, and not recreated")
	}
	held := InFlight(f.Held)
	isOwn := held != nil && held.State.ClaimUID == f.Claim.UID
	if len(f.Users) > 0 && isOwn && held.State.Recreate.Source == appsv1beta1.SnapshotRecreateSource {
		return f.takeBack(held, &Failure{
			Key: held.State.Recreate.Key, Reason: ReasonClaimInUse, Message: "pod " + f.Users[0] + " came to use it when it was deleted",
		})
	}
	if len(f.Users) > 0 {
		return wait(ReasonClaimInUse, "it is being deleted, and goes when pod %s is gone", f.Users[0])
	}
	return wait(ReasonClaimRecreating, "it is being deleted, to be recreated")
}

func wait(reason, format string, args ...any) Step {
	return act(Wait, reason, format, args...)
}

func act(action Action, reason, format string, args ...any) Step {
	return Step{Action: action, Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// until returns the step with the moment at which time changes it.
func (s Step) until(at time.Time) Step {
	s.Until = at
	return s
}

// at returns the step without a moment that is over: it would be looked at without a pause.
func (s Step) at(now time.Time) Step {
	if s.Action == Wait && !s.Until.After(now) {
		s.Until = time.Time{}
	}
	return s
}
