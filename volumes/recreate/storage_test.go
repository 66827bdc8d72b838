// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// storage is what the API server holds of one claim, and what volume binder,
// provisioner, snapshot controller, scheduler and kubelet make of it. It fails the test
// if the operator writes what could cost data.
type storage struct {
	t         testing.TB
	now       time.Time
	claim     *corev1.PersistentVolumeClaim
	pod       *pod
	stored    map[string]*storedVolume
	snapshots map[string]*storedSnapshot
	// trial is the claim to which a snapshot is restored on trial; nil if there is none.
	trial *corev1.PersistentVolumeClaim

	// words are what a driver says that is failing; "the driver refuses", if they are empty.
	words string
	// events are those of claims that have no volume, by what they say.
	events map[string]*corev1.Event
	// stalled: no snapshot becomes ready. failing: the driver refuses to take one.
	// notServed: there is no API for any.
	stalled, failing, notServed bool
	// stuck: no volume is made; stuckOnTrial: none on trial. lazy: none is before there is a pod. retains: volumes that
	// are made on trial stay when their claims are gone.
	stuck, stuckOnTrial, lazy, retains bool
	// sick: no pod becomes ready.
	sick bool
	// admission changes claims when they are created; nil for none.
	admission func(*corev1.PersistentVolumeClaim)
	// refuses says why the API server refuses a claim; empty if it does not, nil for none.
	refuses func(*corev1.PersistentVolumeClaim) string
	// others are pods that use the claim as well, and nodes those that its volume is
	// attached to, if volumes are.
	others   []string
	attaches bool
	nodes    []string

	// counts names objects, and changes counts writes of the operator.
	counts  map[string]int
	changes int
	// acknowledged is how often pods have written.
	acknowledged int
}

// pod is the pod of the claim.
type pod struct {
	uid                       types.UID
	since                     time.Time
	scheduled, ready, leaving bool
}

func (p *pod) IsReady() bool { return p != nil && p.ready && !p.leaving }

// storedVolume is a volume with what was written to it.
type storedVolume struct {
	*corev1.PersistentVolume
	data []int
}

type storedSnapshot struct {
	*snapshotv1.VolumeSnapshot
	data []int
}

func newStorage(t testing.TB) *storage {
	t.Helper()
	return &storage{t: t, now: start, counts: map[string]int{}, events: map[string]*corev1.Event{}, stored: map[string]*storedVolume{}, snapshots: map[string]*storedSnapshot{}}
}

func snapshotClasses() []snapshotv1.VolumeSnapshotClass {
	return []snapshotv1.VolumeSnapshotClass{{
		ObjectMeta: metav1.ObjectMeta{Name: "usual", Annotations: map[string]string{isDefaultSnapshotClass: "true"}}, Driver: driver,
	}}
}

// complain is the event of a provisioner that fails. The same words again are counted.
func (s *storage) complain(claim *corev1.PersistentVolumeClaim) {
	if s.words == "" {
		return
	}
	key, at := string(claim.UID)+s.words, metav1.NewTime(s.now)
	if s.events[key] == nil {
		s.events[key] = &corev1.Event{
			InvolvedObject: corev1.ObjectReference{Kind: "PersistentVolumeClaim", Name: claim.Name, UID: claim.UID},
			Reason:         ProvisioningFailedEvent, Message: s.words, FirstTimestamp: at,
		}
	}
	s.events[key].LastTimestamp = at
}

// eventsOf returns the events of a claim.
func (s *storage) eventsOf(claim *corev1.PersistentVolumeClaim) []corev1.Event {
	var found []corev1.Event
	for _, event := range s.events {
		if event.InvolvedObject.UID == claim.UID {
			found = append(found, *event)
		}
	}
	return found
}

// refusal is what the driver says when it is failing.
func (s *storage) refusal() string { return cmp.Or(s.words, "the driver refuses") }

// isTrial reports whether a snapshot is one that is taken before the pod is stopped.
func isTrial(name string) bool { return strings.HasSuffix(name, trialSuffix) }

// next returns a new name.
func (s *storage) next(prefix string) string {
	s.counts[prefix]++
	return fmt.Sprintf("%s-%d", prefix, s.counts[prefix])
}

// touch gives the claim a new version.
func (s *storage) touch() { s.claim.ResourceVersion = s.next("v") }

// volume returns a volume as it is read; nil if there is none.
func (s *storage) volume(name string) *Volume {
	stored := s.stored[name]
	if stored == nil {
		return nil
	}
	v, err := NewVolume(stored.DeepCopy())
	if err != nil {
		s.t.Fatal(err)
	}
	return &v
}

func (s *storage) snapshot(name string) *snapshotv1.VolumeSnapshot {
	if stored := s.snapshots[name]; stored != nil {
		return stored.DeepCopy()
	}
	return nil
}

func (s *storage) snapshotsOf(held []appsv1beta1.HeldVolume) map[string]*snapshotv1.VolumeSnapshot {
	found := map[string]*snapshotv1.VolumeSnapshot{}
	for _, entry := range held {
		found[entry.Snapshot] = s.snapshot(entry.Snapshot)
	}
	return found
}

// users are the pods on nodes that use the claim.
func (s *storage) users() []string {
	users := slices.Clone(s.others)
	if s.pod != nil && s.pod.scheduled {
		users = append(users, "sample-0")
	}
	return users
}

// apply is what the API server makes of a step, if that is none that could cost data.
func (s *storage) apply(step Step) {
	s.t.Helper()
	if why := s.forbids(step); why != "" {
		s.t.Fatalf("%s: %s (%s)", short(step), why, step.Message)
	}
	switch step.Action {
	case Note:
		setRecord(s.claim, step.Record)
		s.touch()
	case CreateSnapshot:
		snapshot := step.Snapshot.DeepCopy()
		snapshot.UID, snapshot.CreationTimestamp = types.UID(s.next("snapshot")), metav1.NewTime(s.now)
		s.snapshots[snapshot.Name] = &storedSnapshot{VolumeSnapshot: snapshot}
		if !s.failing {
			s.claim.Finalizers = append(s.claim.Finalizers, "snapshot.storage.kubernetes.io/pvc-as-source-protection")
		}
	case DeleteSnapshot:
		s.snapshots[step.Snapshot.Name].DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
	case HoldVolume:
		text, _ := json.Marshal(step.State)
		pv := s.stored[step.Volume.Name]
		metav1.SetMetaDataAnnotation(&pv.ObjectMeta, appsv1beta1.HeldVolumeStateKey, string(text))
		pv.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	case ReleaseVolume:
		pv := s.stored[step.Volume.Name]
		delete(pv.Annotations, appsv1beta1.HeldVolumeStateKey)
		pv.Spec.PersistentVolumeReclaimPolicy = step.State.ReclaimPolicy
	case FreeVolume:
		pv := s.stored[step.Volume.Name]
		pv.Spec.ClaimRef, pv.Status.Phase = &corev1.ObjectReference{Namespace: "default", Name: claimName}, corev1.VolumeAvailable
	case LockVolume:
		pv := s.stored[step.Volume.Name]
		if pv.Spec.ClaimRef.UID = step.State.ClaimUID; pv.Status.Phase == corev1.VolumeAvailable {
			pv.Status.Phase = corev1.VolumeReleased
		}
	case DiscardVolume:
		s.stored[step.Volume.Name].Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	case DeleteClaim:
		s.claim.DeletionTimestamp = ptr.To(metav1.NewTime(s.now))
		s.touch()
	case CreateClaim:
		s.createClaim(step.Claim)
	case CreateTrialClaim:
		s.createTrialClaim(step.Claim)
	case DeleteTrialClaim:
		s.deleteTrialClaim()
	case None, Wait:
	}
	if step.Volume != nil {
		s.stored[step.Volume.Name].ResourceVersion = s.next("v")
	}
}

// applies reports whether the API server accepts a write that was decided on earlier.
func (s *storage) applies(step Step) bool {
	switch step.Action {
	case Note, DeleteClaim:
		return s.claim != nil && s.claim.UID == step.Claim.UID && s.claim.ResourceVersion == step.Claim.ResourceVersion
	case CreateSnapshot:
		return s.snapshots[step.Snapshot.Name] == nil
	case DeleteSnapshot:
		now := s.snapshots[step.Snapshot.Name]
		return now != nil && now.UID == step.Snapshot.UID
	case HoldVolume, ReleaseVolume, FreeVolume, LockVolume, DiscardVolume:
		now := s.stored[step.Volume.Name]
		return now != nil && now.ResourceVersion == step.Volume.ResourceVersion
	case CreateClaim:
		return s.claim == nil
	case CreateTrialClaim:
		return s.trial == nil
	case DeleteTrialClaim:
		return s.trial != nil && s.trial.UID == step.Claim.UID
	case None, Wait:
	}
	return false
}

// forbids says why a write could cost data; empty if it could not.
func (s *storage) forbids(step Step) string {
	switch step.Action {
	case DeleteClaim:
		return s.forbidsDeletion()
	case CreateClaim:
		if s.claim != nil {
			return "there is one"
		}
	case CreateSnapshot:
		if !isTrial(step.Snapshot.Name) && (len(s.users()) > 0 || len(s.nodes) > 0) {
			return "the volume is written to"
		}
	case DeleteSnapshot:
		if step.Snapshot.Annotations[appsv1beta1.RecreateOfAnnotation] == "" {
			return "it is not ours"
		}
		// The first snapshot is of a pod that writes: nothing is ever made from it.
		isGone := s.claim == nil || s.claim.DeletionTimestamp != nil || s.claim.Status.Phase != corev1.ClaimBound
		if isGone && !isTrial(step.Snapshot.Name) {
			return "the claim has no volume"
		}
	case CreateTrialClaim:
		if s.trial != nil {
			return "there is one"
		}
	case DeleteTrialClaim:
		if step.Claim.UID != s.trial.UID || step.Claim.UID == s.claimUID() {
			return "it is not that of the trial"
		}
	case DiscardVolume:
		v := s.volume(step.Volume.Name)
		if isOfTrial(v.Name) {
			return ""
		}
		if v.State == nil || !v.isProved() || s.claim == nil || s.claim.Spec.VolumeName == v.Name || v.Status.Phase != corev1.VolumeReleased {
			return "nothing proves that it is not needed"
		}
	case ReleaseVolume:
		v := s.volume(step.Volume.Name)
		if s.claim == nil || s.claim.DeletionTimestamp != nil || v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID != s.claim.UID {
			return "it is not that of a claim that stays"
		}
	case FreeVolume:
		if s.claim != nil {
			return "there is a claim"
		}
	case LockVolume:
		if v := s.volume(step.Volume.Name); v.Spec.ClaimRef.UID != "" {
			return "a claim has it"
		}
	case None, Wait, Note, HoldVolume:
	}
	return ""
}

// forbidsDeletion says why the claim is not to be deleted now.
func (s *storage) forbidsDeletion() string {
	if s.claim.Status.Phase != corev1.ClaimBound {
		return ""
	}
	v := s.volume(s.claim.Spec.VolumeName)
	if v.State == nil || v.State.ClaimUID != s.claim.UID || v.isProved() || v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
		return "its volume is not held"
	}
	if v.DeletionTimestamp != nil {
		return "its volume goes with it"
	}
	if len(s.users()) > 0 {
		return "it is in use"
	}
	a := v.State.Recreate
	if a.Source == appsv1beta1.SnapshotRecreateSource {
		snapshot := s.snapshots[a.Snapshot]
		switch {
		case snapshot == nil || !IsReady(snapshot.VolumeSnapshot) || snapshot.Annotations[appsv1beta1.RecreateOfAnnotation] != string(s.claim.UID):
			return "its snapshot is not ready"
		case !slices.Equal(snapshot.data, s.stored[v.Name].data):
			return "its snapshot has not all that was written"
		}
	}
	if noted := volumes.RecordOf(s.claim).Recreate; noted.Number != a.Number || noted.Source != a.Source || noted.Snapshot != a.Snapshot || noted.Volume != a.Volume {
		return "another attempt is noted on the volume"
	}
	return ""
}

func (s *storage) claimUID() types.UID {
	if s.claim == nil {
		return ""
	}
	return s.claim.UID
}

func (s *storage) createClaim(claim *corev1.PersistentVolumeClaim) {
	s.claim = claim.DeepCopy()
	if s.admission != nil {
		s.admission(s.claim)
	}
	s.claim.UID, s.claim.CreationTimestamp = types.UID(s.next("claim")), metav1.NewTime(s.now)
	s.claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}
	s.touch()
}
