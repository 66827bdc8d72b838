// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"maps"
	"slices"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// This file is about the trial: what would fail after the pod of a claim was stopped is
// tried while the pod runs.

// NeedsTrial reports whether something is to be tried before the pod is stopped.
func NeedsTrial(a Attempt) bool {
	return a.Source == appsv1beta1.SnapshotRecreateSource && a.Trial != "" && a.TriedTimestamp == nil
}

// try returns the next step of a claim whose pod still runs. A first snapshot is taken of
// it, so that a driver that cannot do so stops no pod. Where snapshots hold only what
// changed since the one before, it also makes the time shorter that the pod is away.
func (f Facts) try(a Attempt, now time.Time) Step {
	deadline := a.StartTimestamp.Add(f.timeout())
	switch {
	case a.TriedTimestamp != nil:
		if step := f.dropTrialClaim(f.Claim.UID); step != nil {
			return pending(*step)
		}
		return pending(wait(ReasonClaimRecreating, "it is recreated when its pod can be stopped"))
	case f.Trial == nil && now.Before(deadline):
		step := act(CreateSnapshot, ReasonSnapshotNotReady, "a first snapshot %s of it is taken while its pod runs", a.Trial)
		step.Snapshot = f.newSnapshot(a.Trial, a.SnapshotClass)
		return step
	case f.Trial != nil && !isOwnSnapshot(f.Trial, f.Claim.UID):
		return f.giveUp(&Failure{Key: a.Key, Reason: ReasonSnapshotTaken, Timestamp: metav1.NewTime(now).Rfc3339Copy()},
			"the name "+a.Trial+" belongs to a snapshot of another client")
	case IsReady(f.Trial):
		return f.tryRestore(a, now)
	}
	if failure := snapshotFailure(a, f.Trial, now); failure != nil {
		return f.giveUp(failure, failure.Message)
	}
	said := snapshotDriverError(f.Trial).suffix()
	if !now.Before(deadline) {
		return f.giveUp(&Failure{Key: a.Key, Reason: ReasonRecreateTimedOut, Timestamp: metav1.NewTime(now).Rfc3339Copy()},
			"its first snapshot "+a.Trial+" was not ready within "+f.timeout().String()+said)
	}
	return pending(wait(ReasonSnapshotNotReady, "its first snapshot %s is being taken while its pod runs%s", a.Trial, said).until(deadline))
}

// tryRestore returns the next step of a claim whose first snapshot is ready: a claim is
// created from that as the new claim will be. What admission, quotas, the storage class
// and the driver refuse is known then.
func (f Facts) tryRestore(a Attempt, now time.Time) Step {
	failed := func(reason, why string) Step {
		return f.giveUp(&Failure{Key: a.Key, Reason: reason, Timestamp: metav1.NewTime(now).Rfc3339Copy()}, why)
	}
	trial, deadline := f.TrialClaim, a.StartTimestamp.Add(2*f.timeout())
	if trial != nil {
		deadline = trial.CreationTimestamp.Add(f.timeout())
	}
	switch {
	case a.TrialClaim == "":
		return f.tried(now, "its driver takes snapshots: its pod can be stopped")
	case trial != nil && !isTrialOf(trial, f.Claim.UID):
		return f.tried(now, "its driver takes snapshots, and the name "+a.TrialClaim+" of the claim to restore one belongs to another client: its pod can be stopped")
	case trial == nil && f.OverQuota:
		return f.tried(now, "its driver takes snapshots, and a ResourceQuota has no room to restore one on trial: its pod can be stopped")
	case trial == nil && f.Refused != "":
		return failed(volumes.ReasonClaimRefused, "the API server refuses the claim that restores its first snapshot on trial: "+f.Refused)
	case trial != nil && f.rewrittenOnTrial() != "":
		return failed(ReasonClaimRewritten, "admission changed the claim that restores its first snapshot on trial: "+f.rewrittenOnTrial())
	case trial != nil && trial.Status.Phase == corev1.ClaimBound:
		return f.tried(now, "its first snapshot was restored to volume "+trial.Spec.VolumeName+" on trial: its pod can be stopped")
	case f.isSentAway(a):
		return failed(ReasonDriverFails, "its driver makes no volume of its first snapshot on node "+a.Node+f.whyNoVolume())
	case f.newVolumeError().repeats(now):
		failure := f.newVolumeError().failure(a, "restore its first snapshot to claim "+a.TrialClaim+" on trial", now)
		return f.giveUp(failure, failure.Message)
	case !now.Before(deadline):
		return failed(ReasonRecreateTimedOut, "claim "+a.TrialClaim+", which restores its first snapshot on trial, had no volume within "+f.timeout().String()+f.whyNoVolume())
	case trial == nil && f.Pod == nil:
		return pending(wait(ReasonClaimRecreating, "its first snapshot is restored on trial when its pod is there").until(deadline))
	case trial == nil:
		step := act(CreateTrialClaim, ReasonVolumeNotReady, "its first snapshot is restored to claim %s on trial, while its pod runs", a.TrialClaim)
		step.Claim = f.newTrialClaim(a)
		return step
	default:
		return pending(wait(ReasonVolumeNotReady, "its first snapshot is being restored to claim %s on trial, while its pod runs%s", a.TrialClaim, f.newVolumeError().suffix()).until(deadline))
	}
}

// isSentAway reports whether the provisioner has taken the node off the claim of the trial,
// for which it has no volume there. The scheduler would choose another node for a pod, which
// this claim has not.
//
// Source: ProvisioningReschedule in sig-storage-lib-external-provisioner.
func (f Facts) isSentAway(a Attempt) bool {
	return a.Node != "" && f.TrialClaim != nil && f.TrialClaim.Annotations[volumehelpers.AnnSelectedNode] == "" && f.newVolumeError().message != ""
}

// tried returns the step that notes that the trial is over.
func (f Facts) tried(now time.Time, why string) Step {
	record := f.record()
	record.Recreate.TriedTimestamp = ptr.To(metav1.NewTime(now).Rfc3339Copy())
	return f.note(record, "%s", why)
}

// rewrittenOnTrial says what admission has changed in the claim of the trial; empty if
// nothing that matters.
func (f Facts) rewrittenOnTrial() string {
	if source := f.TrialClaim.Spec.DataSource; source == nil || source.Name != f.Trial.Name {
		return "it does not start from snapshot " + f.Trial.Name
	}
	return volumes.FixedDifference(f.TrialClaim, f.Template)
}

// newTrialClaim returns the claim of the trial: what the new claim will be, but for its
// name. It goes with its pod: of a workload that is scaled down or deleted, the operator
// does not look at the claim again.
func (f Facts) newTrialClaim(a Attempt) *corev1.PersistentVolumeClaim {
	f.Snapshot = f.Trial
	claim := f.rehearsal(a)
	claim.Name = a.TrialClaim
	claim.Annotations[appsv1beta1.RecreateOfAnnotation] = string(f.Claim.UID)
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: f.podName(), UID: f.Pod.UID}}
	return claim
}

// rehearsal returns the claim that an attempt would create, without what tells of the
// claim before.
func (f Facts) rehearsal(a Attempt) *corev1.PersistentVolumeClaim {
	claim := f.newClaim(f.asHeld(a))
	claim.OwnerReferences, claim.Finalizers = nil, nil
	claim.Labels = maps.Clone(claim.Labels)
	delete(claim.Annotations, appsv1beta1.VolumeClaimUpdateStateKey)
	return claim
}

// asHeld returns the volume of the claim as it will be held for an attempt.
func (f Facts) asHeld(a Attempt) *Volume {
	return &Volume{PersistentVolume: f.Volume.PersistentVolume, State: newHeldState(f.Claim, f.Volume, f.Owner, a)}
}

// isTrialOf reports whether a claim is that of the trial of another one.
func isTrialOf(trial *corev1.PersistentVolumeClaim, claim types.UID) bool {
	return trial.Annotations[appsv1beta1.RecreateOfAnnotation] == string(claim)
}

// dropTrial returns the next step towards nothing being left of the trial; nil if nothing
// is.
func (f Facts) dropTrial(claim types.UID) *Step {
	if step := f.dropTrialClaim(claim); step != nil {
		return step
	}
	if !isOwnSnapshot(f.Trial, claim) || f.Trial.DeletionTimestamp != nil {
		return nil
	}
	step := act(DeleteSnapshot, ReasonClaimRecreating, "its first snapshot %s is deleted", f.Trial.Name)
	step.Snapshot = f.Trial
	return &step
}

// dropTrialClaim returns the step that deletes the claim of the trial, and the volume
// with it whatever its storage class says; nil if there is none.
func (f Facts) dropTrialClaim(claim types.UID) *Step {
	trial, volume := f.TrialClaim, f.TrialVolume
	if trial == nil || !isTrialOf(trial, claim) || trial.DeletionTimestamp != nil {
		return nil
	}
	step := act(DeleteTrialClaim, ReasonClaimRecreating, "claim %s, to which its first snapshot was restored on trial, is deleted", trial.Name)
	step.Claim = trial
	isRetained := volume != nil && volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimRetain &&
		volume.State == nil && volume.Spec.ClaimRef != nil && volume.Spec.ClaimRef.UID == trial.UID
	if isRetained {
		step = act(DiscardVolume, ReasonClaimRecreating, "volume %s, to which its first snapshot was restored on trial, goes with its claim", volume.Name)
		step.Volume = volume.PersistentVolume
	}
	return &step
}

// Rehearsal returns the claim that would be created for what was judged possible, under a
// name that is free: the API server can be asked by a dry run what it would say to it.
func (f PreflightFacts) Rehearsal(j Judgement) *corev1.PersistentVolumeClaim {
	attempt := Begin(f.Claim, nil, j, time.Time{})
	facts := Facts{Claim: f.Claim, Template: f.Template, Owner: f.Owner, Strategy: f.Strategy, Volume: f.Volume}
	facts.Snapshot = &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Name: attempt.Snapshot}, Status: &snapshotv1.VolumeSnapshotStatus{RestoreSize: f.RestoreSize},
	}
	claim := facts.rehearsal(attempt)
	if target := f.held(j.Volume); target != nil {
		claim.Spec = facts.claimOn(facts.asHeld(attempt), target).Spec
	}
	claim.Name = shorten(claim.Name, maxNameLength-len(trialSuffix)) + trialSuffix
	return claim
}

// held returns the held volume of a name; nil if there is none.
func (f PreflightFacts) held(name string) *Volume {
	i := slices.IndexFunc(f.Held, func(v Volume) bool { return v.Name == name })
	if name == "" || i < 0 {
		return nil
	}
	return &f.Held[i]
}

// Rewritten says what admission would change in the claim that would be created, by the
// answer to a dry run of it; nil if nothing that matters.
func (f PreflightFacts) Rewritten(j Judgement, asked, answer *corev1.PersistentVolumeClaim) *Refusal {
	what := volumes.FixedDifference(answer, f.Template)
	if j.Source == appsv1beta1.VolumeRecreateSource {
		what = ""
		if has, wants := volumehelpers.GetPersistentVolumeClaimClass(answer), volumehelpers.GetPersistentVolumeClaimClass(asked); has != wants {
			what = fmt.Sprintf("its storage class would be %q, and that of volume %s is %q", has, j.Volume, wants)
		}
	}
	if what == "" && !apiequality.Semantic.DeepEqual(asked.Spec.DataSource, answer.Spec.DataSource) {
		what = "it would not start from its snapshot"
	}
	if what == "" {
		return nil
	}
	return &Refusal{ReasonClaimRewritten, "admission would change the new claim: " + what}
}
