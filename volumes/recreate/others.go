// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// This file is about claims that others have a hand in: a person or GitOps creates the
// claim between its deletion and its creation by the operator, or admission changes the
// claim that the operator creates. Such a claim may have nothing of what was written.

// Supplants returns the held volume that a claim should have been recreated from; nil if
// there is none, or the claim's record names it.
func Supplants(claim *corev1.PersistentVolumeClaim, held []Volume) *Volume {
	latest := InFlight(held)
	if latest == nil || latest.State.ClaimUID == claim.UID || isNamed(volumes.RecordOf(claim), latest.Name) {
		return nil
	}
	return latest
}

// isNamed reports whether a record names a held volume.
func isNamed(record volumes.Record, volume string) bool {
	return slices.ContainsFunc(record.HeldVolumes, func(entry appsv1beta1.HeldVolume) bool { return entry.Name == volume })
}

// beginsEmpty reports whether a user keeps a claim as another client has created it.
func beginsEmpty(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Annotations[appsv1beta1.BeginEmptyAnnotation] == "true"
}

// adopt returns the step that notes on a claim of another client which volume has the
// data of the claim before it; nil if there is no such volume.
func (f Facts) adopt() *Step {
	held := Supplants(f.Claim, f.Held)
	if held == nil {
		return nil
	}
	record := f.record()
	isOwn := func(entry appsv1beta1.HeldVolume) bool { return entry.Name == f.Claim.Spec.VolumeName }
	record.HeldVolumes = slices.DeleteFunc(heldBefore(held), isOwn)
	step := Step{}
	switch entry := &record.HeldVolumes[0]; {
	case beginsEmpty(f.Claim):
		entry.Source = appsv1beta1.EmptyRecreateSource
		step = f.note(record, "it keeps what it has, as annotation %s says; volume %s is held", appsv1beta1.BeginEmptyAnnotation, held.Name)
	case f.isRestoredFrom(held):
		step = f.note(record, "it has the data that it was to have; volume %s is held", held.Name)
	default:
		entry.NotRestored = true
		step = f.note(record, "%s", f.whyNotRestored(entry))
	}
	return &step
}

// isRestoredFrom reports whether a claim that is bound starts with what was in a held
// volume.
func (f Facts) isRestoredFrom(held *Volume) bool {
	a := held.State.Recreate
	if a.Source == appsv1beta1.VolumeRecreateSource {
		return a.Volume == f.Claim.Spec.VolumeName
	}
	return a.Source == appsv1beta1.SnapshotRecreateSource && f.asksFor(a.Snapshot) && !f.isOnOther()
}

// asksFor reports whether the claim is to start with what is in a snapshot.
func (f Facts) asksFor(snapshot string) bool {
	source := f.Claim.Spec.DataSource
	return source != nil && source.Kind == "VolumeSnapshot" && source.Name == snapshot
}

// notRestored returns the next step of a claim on a volume that has nothing of what is in
// a held one. A pod that is not there yet does not start on it, until a user says what the
// claim is to have.
func (f Facts) notRestored(record volumes.Record, i int, now time.Time) Step {
	entry := &record.HeldVolumes[i]
	if beginsEmpty(f.Claim) {
		record.HeldVolumes = slices.Clone(record.HeldVolumes)
		record.HeldVolumes[i].NotRestored, record.HeldVolumes[i].Source = false, appsv1beta1.EmptyRecreateSource
		return f.note(record, "it keeps what it has, as annotation %s says; volume %s is held", appsv1beta1.BeginEmptyAnnotation, entry.Name)
	}
	if f.Pod == nil && GivesBack(f.Claim) {
		return f.giveBack(record, now)
	}
	step := wait(ReasonVolumeNotRestored, "%s", f.whyNotRestored(entry))
	step.PodMayRun, step.Watched = f.Pod != nil, true
	return step
}

func (f Facts) whyNotRestored(entry *appsv1beta1.HeldVolume) string {
	if entry.NotRestored {
		return wordsOfNotRestored(entry)
	}
	return "it was bound to volume " + f.Claim.Spec.VolumeName + ", which was there before, and not to one from snapshot " + entry.Snapshot + waysOut(entry)
}

func wordsOfNotRestored(entry *appsv1beta1.HeldVolume) string {
	return "another client created it while it was recreated, and it has nothing of the data" + waysOut(entry)
}

// waysOut says what a user can do about a claim that has nothing of what is in a held
// volume.
func waysOut(entry *appsv1beta1.HeldVolume) string {
	return fmt.Sprintf("; volume %s has the data: to get that back, set annotation %s=%s on the claim; to go on without it, set %s=true",
		entry.Name, appsv1beta1.UndoRecreateAnnotation, entry.Name, appsv1beta1.BeginEmptyAnnotation)
}

// unrestored returns the held volume of which a user has to say whether a claim is to have
// it back; nil if there is none.
func unrestored(record volumes.Record) *appsv1beta1.HeldVolume {
	i := slices.IndexFunc(record.HeldVolumes, func(entry appsv1beta1.HeldVolume) bool { return entry.NotRestored })
	if i < 0 {
		return nil
	}
	return &record.HeldVolumes[i]
}

// settled returns held volumes for a claim that a user has asked to have another one of
// them. What is in those that were not restored is in no other volume.
func settled(held []appsv1beta1.HeldVolume) []appsv1beta1.HeldVolume {
	held = slices.Clone(held)
	for i := range held {
		if held[i].NotRestored {
			held[i].NotRestored, held[i].Source = false, appsv1beta1.EmptyRecreateSource
		}
	}
	return held
}

// leave returns the next step of a claim without a volume that the operator does not
// delete, although it did not create it: a user wants it so, or the data is that of
// another workload.
func (f Facts) leave(held *Volume) Step {
	if step := f.adopt(); step != nil {
		return *step
	}
	if beginsEmpty(f.Claim) {
		return pending(wait(ReasonVolumeNotReady, "it begins empty, as annotation %s says", appsv1beta1.BeginEmptyAnnotation))
	}
	return f.ask(held)
}

// ask returns the step that keeps a pod away whose claim would get the data of another
// workload, until a user says what the claim is to have.
func (f Facts) ask(held *Volume) Step {
	return wait(ReasonHeldForAnother, "%s; to begin without that data, create the claim with annotation %s=true", whoseIs(*held, f.Owner), appsv1beta1.BeginEmptyAnnotation)
}

// whoseIs says whose a held volume is, and how it is given to another workload.
func whoseIs(held Volume, owner types.UID) string {
	return fmt.Sprintf("volume %s is held for the claim of a workload of this name that was deleted (UID %s): to have its data, run kubectl annotate pv %s %s=%s",
		held.Name, held.State.OwnerUID, held.Name, appsv1beta1.TakeOverAnnotation, owner)
}

// GivesBack reports whether an earlier volume is to be given back to a claim: a user asks
// for it, or the claim started without its data since admission changed the claim.
func GivesBack(claim *corev1.PersistentVolumeClaim) bool {
	record := volumes.RecordOf(claim)
	return AsksForUndo(claim) || isRewritten(record) && unrestored(record) != nil
}

// giveBack returns the step that begins to give an earlier volume back to a claim whose
// pod is kept away. There is no pod to be stopped for that.
func (f Facts) giveBack(record volumes.Record, now time.Time) Step {
	switch j := f.Judgement; {
	case j == nil:
		return wait(ReasonClaimRecreating, "it is to have an earlier volume back")
	case j.Refused != nil:
		return wait(j.Refused.Reason, "%s", j.Refused.Message)
	default:
		attempt := Begin(f.Claim, f.Held, *j, now)
		record.Recreate = &attempt
		return f.note(record, "it gets its volume %s back", j.Volume)
	}
}

// isRewritten reports whether admission has changed a claim, so that it has nothing of the
// data that it was to have.
func isRewritten(record volumes.Record) bool {
	return record.RecreateFailure != nil && record.RecreateFailure.Reason == ReasonClaimRewritten
}

// rewritten returns the failure of a claim that the operator created and admission has
// changed; nil if nothing that matters was changed. What admission does to one claim it
// does to the next: to create it again would not help.
func (f Facts) rewritten(held *Volume, now time.Time) *Failure {
	record, a := f.record(), held.State.Recreate
	if record.MadeFor == "" || record.MadeFor != madeFor(f.Template) || len(record.HeldVolumes) == 0 || record.HeldVolumes[0].Name != held.Name {
		return nil
	}
	what := volumes.FixedDifference(f.Claim, f.Template)
	if a.Source == appsv1beta1.SnapshotRecreateSource && !f.asksFor(a.Snapshot) {
		what = "it does not start from snapshot " + a.Snapshot
	}
	if what == "" {
		return nil
	}
	return &Failure{
		Key: KeyOf(f.Template, f.Strategy), Reason: ReasonClaimRewritten, Timestamp: metav1.NewTime(now).Rfc3339Copy(),
		Message: "admission changed the claim when it was created: " + what,
	}
}

// accept returns the step that notes that admission has changed a claim which is bound:
// it is not recreated again for the same template. It is nil if there is nothing to note.
func (f Facts) accept(now time.Time) *Step {
	record := f.record()
	if len(record.HeldVolumes) == 0 || record.HeldVolumes[0].SinceTimestamp != nil || f.held(record.HeldVolumes[0].Name) == nil {
		return nil
	}
	held := f.held(record.HeldVolumes[0].Name)
	failure := f.rewritten(held, now)
	if failure == nil || record.RecreateFailure != nil && record.RecreateFailure.Key == failure.Key {
		return nil
	}
	a := held.State.Recreate
	record.RecreateFailure = failure
	record.HeldVolumes = slices.Clone(record.HeldVolumes)
	record.HeldVolumes[0].NotRestored = a.Source == appsv1beta1.SnapshotRecreateSource && !f.asksFor(a.Snapshot)
	step := f.note(record, "%s", failure.Message)
	step.Reason, step.Failed = failure.Reason, true
	return &step
}
