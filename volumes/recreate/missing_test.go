// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"strings"
	"testing"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// option is one state that an object may be in.
type option[T any] struct {
	name  string
	value T
}

const (
	ownUID   = types.UID("claim-1")
	otherUID = types.UID("claim-0")
)

func terminating() *metav1.Time { return ptr.To(metav1.NewTime(start)) }

// anySnapshot returns the states of a snapshot of a name.
func anySnapshot(name string, of types.UID) []option[*snapshotv1.VolumeSnapshot] {
	snapshot := func(change func(*snapshotv1.VolumeSnapshot)) *snapshotv1.VolumeSnapshot {
		s := &snapshotv1.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "s", Annotations: map[string]string{appsv1beta1.RecreateOfAnnotation: string(of)}},
			Status:     &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(true), BoundVolumeSnapshotContentName: ptr.To("content")},
		}
		change(s)
		return s
	}
	return []option[*snapshotv1.VolumeSnapshot]{
		{"missing", nil},
		{"ready", snapshot(func(*snapshotv1.VolumeSnapshot) {})},
		{"without a status", snapshot(func(s *snapshotv1.VolumeSnapshot) { s.Status = nil })},
		{"terminating", snapshot(func(s *snapshotv1.VolumeSnapshot) { s.DeletionTimestamp = terminating() })},
		{"of another client", snapshot(func(s *snapshotv1.VolumeSnapshot) { s.Annotations = nil })},
	}
}

// stateOf returns what is noted on a volume that is held.
func stateOf(claim types.UID, source appsv1beta1.VolumeClaimRecreateSource, back string, proved bool) *appsv1beta1.HeldVolumeState {
	state := &appsv1beta1.HeldVolumeState{
		Namespace: "default", Claim: claimName, ClaimUID: claim, ReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
		Recreate: Attempt{Number: 1, Source: source, Snapshot: "snap", Trial: "snap-trial", Volume: back, StartTimestamp: metav1.NewTime(start)},
	}
	if proved {
		state.ProvedTimestamp = terminating()
	}
	return state
}

// anyTrialClaim returns claims on trial in all states.
func anyTrialClaim() []option[Facts] {
	claims := []option[Facts]{{"missing", Facts{}}}
	for _, phase := range []corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimLost, corev1.ClaimBound} {
		claim := templateOf("fast", "1Gi")
		claim.Name, claim.UID, claim.Status.Phase = "snap-trial", "trial", phase
		claim.Annotations = map[string]string{appsv1beta1.RecreateOfAnnotation: string(ownUID)}
		going := claim.DeepCopy()
		going.DeletionTimestamp = terminating()
		claims = append(claims, option[Facts]{"trial " + string(phase), Facts{TrialClaim: claim}},
			option[Facts]{"trial terminating " + string(phase), Facts{TrialClaim: going}})
	}
	bound := claims[len(claims)-2].value
	bound.TrialVolume = anyVolume("trial-pv", nil, hasNoOwner)
	return append(claims, option[Facts]{"trial with a volume", bound})
}

func anyVolume(name string, state *appsv1beta1.HeldVolumeState, change func(*corev1.PersistentVolume)) *Volume {
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
		Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: "slow",
			ClaimRef: &corev1.ObjectReference{Namespace: "default", Name: claimName, UID: otherUID},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeReleased},
	}
	if change != nil {
		change(pv)
	}
	return &Volume{PersistentVolume: pv, State: state}
}

func isGoing(pv *corev1.PersistentVolume)       { pv.DeletionTimestamp = terminating() }
func hasNoOwner(pv *corev1.PersistentVolume)    { pv.Spec.ClaimRef = nil }
func hasNoCapacity(pv *corev1.PersistentVolume) { pv.Spec.Capacity = nil }

func anyHeld() []option[[]Volume] {
	snapshot, volume := appsv1beta1.SnapshotRecreateSource, appsv1beta1.VolumeRecreateSource
	return []option[[]Volume]{
		{"none", nil},
		{"to be restored", []Volume{*anyVolume("old", stateOf(otherUID, snapshot, "", false), nil)}},
		{"to be restored, terminating", []Volume{*anyVolume("old", stateOf(otherUID, snapshot, "", false), isGoing)}},
		{"to be given back", []Volume{*anyVolume("old", stateOf(otherUID, volume, "old", false), nil)}},
		{"to be given back, terminating", []Volume{*anyVolume("old", stateOf(otherUID, volume, "old", false), isGoing)}},
		{"another is to be given back", []Volume{*anyVolume("old", stateOf(otherUID, volume, "target", false), hasNoOwner)}},
		{"empty", []Volume{*anyVolume("old", stateOf(otherUID, appsv1beta1.EmptyRecreateSource, "", false), hasNoCapacity)}},
		{"proved", []Volume{*anyVolume("old", stateOf(otherUID, snapshot, "", true), nil)}},
		{"of the claim that is there", []Volume{*anyVolume("own", stateOf(ownUID, snapshot, "", false), nil)}},
	}
}

func anyTarget() []option[*Volume] {
	held := stateOf(otherUID, appsv1beta1.SnapshotRecreateSource, "", true)
	return []option[*Volume]{
		{"missing", nil},
		{"held", anyVolume("target", held, nil)},
		{"terminating", anyVolume("target", held, isGoing)},
		{"without marks", anyVolume("target", nil, nil)},
		{"without an owner", anyVolume("target", held, hasNoOwner)},
	}
}

// anyClaim returns claims with their volumes, in all states and with all records.
func anyClaim() []option[Facts] {
	claims := []option[Facts]{{"missing", Facts{}}}
	attempt := func(change func(*Attempt)) volumes.Record {
		a := &Attempt{
			Number: 1, ClaimUID: ownUID, Source: appsv1beta1.SnapshotRecreateSource, Snapshot: "snap", Trial: "snap-trial", TrialClaim: "snap-trial",
			StartTimestamp: metav1.NewTime(start),
		}
		change(a)
		return volumes.Record{Recreate: a}
	}
	records := []option[volumes.Record]{
		{"no record", volumes.Record{}},
		{"begun", attempt(func(*Attempt) {})},
		{"its pod is stopped", attempt(func(a *Attempt) { a.Pod = "pod" })},
		{"stopped", attempt(func(a *Attempt) { a.Pod, a.StoppedTimestamp = "pod", terminating() })},
		{"given back, stopped", attempt(func(a *Attempt) {
			a.Source, a.Volume, a.StoppedTimestamp = appsv1beta1.VolumeRecreateSource, "old", terminating()
		})},
		{"given up", attempt(func(a *Attempt) { a.Abandoned = "so" })},
		{"has its volume back", volumes.Record{GivenBack: true}},
		{"holds", volumes.Record{HeldVolumes: []appsv1beta1.HeldVolume{{Name: "old", Number: 1, Source: "Snapshot", Snapshot: "snap"}}}},
		{"holds what is not restored", volumes.Record{HeldVolumes: []appsv1beta1.HeldVolume{{Name: "old", Number: 1, Source: "Snapshot", NotRestored: true}}}},
		{"has held", volumes.Record{HeldVolumes: []appsv1beta1.HeldVolume{{Name: "old", Number: 1, Source: "Snapshot", Snapshot: "snap", SinceTimestamp: terminating()}}}},
	}
	own := []option[*Volume]{
		{"no volume", nil},
		{"volume", anyVolume("own", nil, nil)},
		{"volume terminating", anyVolume("own", nil, isGoing)},
		{"volume held", anyVolume("own", stateOf(ownUID, appsv1beta1.SnapshotRecreateSource, "", false), nil)},
		{"volume held for another", anyVolume("own", stateOf(otherUID, appsv1beta1.VolumeRecreateSource, "own", true), hasNoOwner)},
	}
	for _, record := range records {
		for _, phase := range []corev1.PersistentVolumeClaimPhase{"", corev1.ClaimPending, corev1.ClaimLost, corev1.ClaimBound} {
			claim := templateOf("slow", "1Gi")
			claim.UID, claim.Status.Phase = ownUID, phase
			setRecord(claim, record.value)
			if phase != corev1.ClaimBound {
				going := claim.DeepCopy()
				going.DeletionTimestamp = terminating()
				claims = append(claims, option[Facts]{string(phase) + ", " + record.name, Facts{Claim: claim}},
					option[Facts]{string(phase) + ", terminating, " + record.name, Facts{Claim: going}})
				continue
			}
			for _, v := range own {
				bound := claim.DeepCopy()
				bound.Spec.VolumeName = "own"
				claims = append(claims, option[Facts]{"bound, " + v.name + ", " + record.name, Facts{Claim: bound, Volume: v.value}})
			}
		}
	}
	return claims
}

// TestAnythingMissingOrTerminating: whatever is missing, terminating or without a status,
// the planner says what it does or waits for, names the objects of its writes, and deletes
// no claim whose volume is not held for it.
func TestAnythingMissingOrTerminating(t *testing.T) {
	strategy, cases := recreated(nil), 0
	for _, claim := range anyClaim() {
		for _, held := range anyHeld() {
			for _, target := range anyTarget() {
				for _, snapshot := range anySnapshot("snap", otherUID) {
					for _, trial := range anySnapshot("snap-trial", ownUID)[:4] {
						for i, pod := range []*Pod{nil, {UID: "pod", Ready: true}} {
							f := claim.value
							trials := anyTrialClaim()
							tried := trials[(cases+i)%len(trials)].value
							f.TrialClaim, f.TrialVolume = tried.TrialClaim, tried.TrialVolume
							f.Template, f.Workload, f.Strategy = templateOf("fast", "1Gi"), "sample", strategy
							f.Held, f.Target, f.Snapshot, f.Trial, f.Pod = held.value, target.value, snapshot.value, trial.value, pod
							f.Snapshots = map[string]*snapshotv1.VolumeSnapshot{"snap": snapshot.value}
							cases++
							if what := wrongStep(f); what != "" {
								t.Fatalf("claim %s; held %s; target %s; snapshot %s; trial %s; pod %v: %s",
									claim.name, held.name, target.name, snapshot.name, trial.name, pod, what)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", cases)
}

// wrongStep says what is wrong with the step that follows from facts; empty if nothing is.
func wrongStep(f Facts) (wrong string) {
	defer func() {
		if r := recover(); r != nil {
			wrong = fmt.Sprint("panic: ", r)
		}
	}()
	step := Next(f, start)
	switch step.Action {
	case None:
		return ""
	case Wait, Note:
	case CreateSnapshot, DeleteSnapshot:
		if step.Snapshot == nil {
			return short(step) + " names no snapshot"
		}
	case HoldVolume, ReleaseVolume, FreeVolume, LockVolume, DiscardVolume:
		if step.Volume == nil {
			return string(step.Action) + " names no volume"
		}
	case DeleteClaim:
		isBound := f.Claim.Status.Phase == corev1.ClaimBound
		if isBound && (f.Volume == nil || f.Volume.State == nil || f.Volume.State.ClaimUID != f.Claim.UID) {
			return "a claim is deleted whose volume is not held for it: " + step.Message
		}
	case CreateTrialClaim, DeleteTrialClaim:
		if step.Claim == nil || step.Claim.Name == f.Claim.Name {
			return string(step.Action) + " names another claim than that of the trial"
		}
	case CreateClaim:
		if f.Claim != nil {
			return "a claim is created that is there"
		}
	}
	if step.Reason == "" || step.Message == "" || strings.Contains(step.Message, "%!") {
		return fmt.Sprintf("%s says not what it is for: %q %q", step.Action, step.Reason, step.Message)
	}
	return ""
}
