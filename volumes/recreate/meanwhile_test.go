// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"slices"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// In the tests of this file, another client acts between two writes of the operator.

// theirs returns a snapshot that another client has taken, of no data.
func (l *life) theirs(name string) *snapshotv1.VolumeSnapshot {
	return &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: "theirs"},
		Status: &snapshotv1.VolumeSnapshotStatus{
			ReadyToUse: ptr.To(true), BoundVolumeSnapshotContentName: ptr.To("theirs"), RestoreSize: ptr.To(resource.MustParse("1Gi")),
		},
	}
}

// replaceSnapshots puts snapshots of others in the place of all there are.
func (l *life) replaceSnapshots() {
	for name := range l.snapshots {
		l.snapshots[name] = &storedSnapshot{VolumeSnapshot: l.theirs(name)}
	}
}

// deleted returns when something is deleted: now.
func (l *life) deleted() *metav1.Time { return ptr.To(metav1.NewTime(l.now)) }

// TestVolumeIsSetToDelete: a user gives the held volume its old reclaim policy back. The
// claim is not deleted before the volume is kept again.
func TestVolumeIsSetToDelete(t *testing.T) {
	for _, write := range []string{"HoldVolume", "CreateSnapshot", "DeleteTrial"} {
		t.Run(write, func(t *testing.T) {
			l := newLife(t, nil)
			l.wants("fast")
			l.until(write)
			l.stored["pv-1"].Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			l.settle()
			l.expectOn("pv-2", "fast")
			NewWithT(t).Expect(l.stored).To(HaveKey("pv-1"), "the old volume is retained, as the strategy says")
		})
	}
}

// TestBlindness: the manager is down after the snapshot was taken. A pod comes, writes,
// and goes meanwhile, which no snapshot has.
func TestBlindness(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, deletes(true))
	l.strategy.Recreate.TimeoutSeconds = ptr.To[int32](3600)
	l.wants("fast")
	l.until("CreateSnapshot")
	l.turn()
	for name, snapshot := range l.snapshots {
		g.Expect(snapshot.data).NotTo(BeEmpty(), "snapshot %s has been taken", name)
	}
	l.acknowledged++
	l.stored["pv-1"].data = append(l.stored["pv-1"].data, l.acknowledged)
	l.now = l.now.Add(blindPeriod)
	l.settle()
	l.expectClean()
	g.Expect(l.missing()).To(BeEmpty())
	g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("fast")), "it is begun again")
}

// TestDiscardSparesWhatOthersHave: an administrator let another claim have the held
// volume. That claim is gone, and what it wrote is in the volume.
func TestDiscardSparesWhatOthersHave(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.OldVolume = appsv1beta1.DeleteRecreateRetention })
	l.wants("fast")
	l.settle()
	g.Expect(l.stored).To(HaveKey("pv-1"))
	l.stored["pv-1"].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "other", UID: "other"}
	l.wrote()
	l.now = l.now.Add(100 * time.Hour)
	l.settle()
	g.Expect(l.wrote()).To(BeEmpty())
	g.Expect(l.stored).To(HaveKey("pv-1"))
}

// TestSnapshotIsReplaced: the snapshot of a claim that was deleted is gone, and another
// one has its name: of other data. The claim gets its volume back.
func TestSnapshotIsReplaced(t *testing.T) {
	for _, write := range []string{"DeleteClaim", "CreateClaim", "CreatePod"} {
		t.Run(write, func(t *testing.T) {
			l := newLife(t, nil)
			l.stuck = true
			l.wants("fast")
			l.until(write)
			l.replaceSnapshots()
			l.reconcile()
			l.stuck = false
			l.settle()
			l.expectOnOld(ReasonSnapshotLost)
		})
	}
}

// TestNewClaimIsDeleted: a user deletes a claim that was recreated, before its pod has
// been ready. That says nothing against the snapshot: it is made from it again.
func TestNewClaimIsDeleted(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.sick = true
	l.wants("fast")
	l.settle()
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-2"))
	l.wrote()
	l.claim.DeletionTimestamp = l.deleted()
	l.touch()
	l.rounds(5)
	g.Expect(l.wrote()).To(BeEmpty())
	g.Expect(l.step).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonClaimInUse)), "its pod still uses it")

	l.pod, l.sick = nil, false
	l.settle()
	g.Expect(l.wrote()).To(ContainElement("CreateClaim from snapshot"))
	l.expectClean()
	g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("fast")))
	g.Expect(l.failure()).To(BeEmpty())
}

// TestAnotherPodMeanwhile: the pod was deleted for its claim, and another pod of its name
// runs, which no attempt was noted for. That keeps its volume.
func TestAnotherPodMeanwhile(t *testing.T) {
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeletePod")
	l.pod = &pod{uid: "theirs", since: l.now, scheduled: true, ready: true}
	l.paused = true
	l.settle()
	l.expectOn("pv-1", "slow")
	l.paused = false
	l.settle()
	l.expectOn("pv-2", "fast")
}

// TestVolumeIsLost: a user deletes the volume of a claim that is to be recreated. The
// attempt ends, whatever becomes of the claim.
func TestVolumeIsLost(t *testing.T) {
	for _, write := range []string{"Note begin", "CreateTrial", "Note stop", "DeletePod"} {
		l := newLife(t, nil)
		l.wants("fast")
		l.until(write)
		delete(l.stored, "pv-1")
		l.claim.Status.Phase = corev1.ClaimLost
		l.touch()
		l.rounds(10)
		NewWithT(t).Expect(volumes.RecordOf(l.claim).Recreate).To(BeNil(), write)
	}
}

// TestVolumeIsBeingDeleted: a user deletes the volume, which stays as long as its claim
// does. So the claim stays, and no pod is stopped any more.
func TestVolumeIsBeingDeleted(t *testing.T) {
	for write, isStopped := range map[string]bool{"Note begin": false, "CreateTrial": false, "DeletePod": true, "CreateSnapshot": true} {
		t.Run(write, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, nil)
			l.wants("fast")
			l.until(write)
			l.stored["pv-1"].DeletionTimestamp = l.deleted()
			l.settle()
			l.expectOn("pv-1", "slow")
			g.Expect(l.refused).To(Equal(ReasonVolumeTerminating))
			g.Expect(slices.Contains(l.wrote(), "DeletePod")).To(Equal(isStopped))
		})
	}
}

// TestClaimIsKept: a claim that others have a reason to keep is not deleted. It would be
// neither there nor gone.
func TestClaimIsKept(t *testing.T) {
	for finalizer, reason := range map[string]string{beingSavedFinalizer: "", "example.com/backup": ReasonClaimHasFinalizers} {
		t.Run(finalizer, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, nil)
			l.wants("fast")
			l.until("DeleteTrial")
			l.turn()
			l.wrote()
			l.claim.Finalizers = []string{finalizer}
			l.rounds(30)
			g.Expect(l.wrote()).NotTo(ContainElement("DeleteClaim"))
			g.Expect(l.refused).To(Equal(reason))
			l.claim.Finalizers = nil
			l.settle()
			l.expectClean()
			g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("fast")))
			g.Expect(l.missing()).To(BeEmpty())
		})
	}
}

// TestSnapshotsAreServedMeanwhile: a claim was to be made empty, since there were no
// snapshots. Now there are.
func TestSnapshotsAreServedMeanwhile(t *testing.T) {
	l := newLife(t, withoutSnapshot)
	l.notServed = true
	l.wants("fast")
	l.until("HoldVolume")
	l.notServed = false
	l.settle()
	l.expectOn("pv-2", "fast")
}

// TestNotOurs: an attempt ends when the claim belongs to another controller; if the same
// has failed for another claim, it ends as long as that spares the pod.
func TestNotOurs(t *testing.T) {
	for write, isStopped := range map[string]bool{"Note begin": false, "CreateTrial": false, "DeletePod": true, "HoldVolume": true} {
		g := NewWithT(t)
		l := newLife(t, nil)
		l.wants("fast")
		l.until(write)
		foreign, failed := l.facts(), l.facts()
		foreign.Foreign, failed.Failed = true, "data-sample-1"
		g.Expect(Next(foreign, l.now).Record.Recreate).To(HaveValue(HaveField("Abandoned", ContainSubstring("another controller"))), write)
		if step := Next(failed, l.now); isStopped {
			g.Expect(step).To(Equal(Next(l.facts(), l.now)), write)
		} else {
			g.Expect(step.Record.Recreate).To(HaveValue(HaveField("Abandoned", ContainSubstring("failed for claim data-sample-1"))), write)
		}
	}
}

// TestHeldForAnotherAttempt: the last write of a dead manager arrives, which holds the
// volume for what was wanted before. The claim is not deleted with that: it would be
// made from something else.
func TestHeldForAnotherAttempt(t *testing.T) {
	for name, change := range map[string]func(*appsv1beta1.HeldVolumeState){
		"of another claim":      func(s *appsv1beta1.HeldVolumeState) { s.ClaimUID = "other" },
		"of another number":     func(s *appsv1beta1.HeldVolumeState) { s.Recreate.Number = 7 },
		"from another snapshot": func(s *appsv1beta1.HeldVolumeState) { s.Recreate.Snapshot = "other" },
		"from a volume":         func(s *appsv1beta1.HeldVolumeState) { s.Recreate.Volume = "pv-9" },
		"empty":                 func(s *appsv1beta1.HeldVolumeState) { s.Recreate.Source = appsv1beta1.EmptyRecreateSource },
	} {
		for _, class := range []string{"fast", "slow"} {
			t.Run(name+"/"+class, func(t *testing.T) {
				l := newLife(t, nil)
				l.wants("fast")
				l.until("CreateSnapshot")
				state := l.volume("pv-1").State
				change(state)
				l.apply(Step{Action: HoldVolume, Volume: l.stored["pv-1"].PersistentVolume, State: state})
				l.reconcile()
				l.wants(class)
				l.settle()
				l.expectOn(map[string]string{"fast": "pv-2", "slow": "pv-1"}[class], class)
			})
		}
	}
}

// TestPodByHand: a pod of the name that the workload does not own uses the volume while
// it is saved, or while its claim is deleted. What that writes is not lost.
func TestPodByHand(t *testing.T) {
	for _, write := range []string{"CreateSnapshot", "DeleteTrial", "DeleteClaim"} {
		t.Run(write, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, nil)
			l.wants("fast")
			l.until(write)
			l.others = []string{"sample-0"}
			l.rounds(3)
			l.acknowledged++
			l.stored["pv-1"].data = append(l.stored["pv-1"].data, l.acknowledged)
			l.rounds(10)
			l.others = nil
			l.settle()
			l.expectClean()
			g.Expect(l.missing()).To(BeEmpty())
		})
	}
}

// TestDetachingAfterALongGracePeriod: the time for the volume to be detached begins when
// the pod has had its own.
func TestDetachingAfterALongGracePeriod(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.attaches, l.nodes = true, []string{"node-1"}
	l.wants("fast")
	l.until("DeletePod")
	record := volumes.RecordOf(l.claim)
	record.Recreate.GraceSeconds = 3600
	setRecord(l.claim, record)
	stopped := record.Recreate.StartTimestamp
	l.turn()
	l.now = stopped.Add(time.Hour + 59*time.Second)
	g.Expect(Next(l.facts(), l.now)).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonVolumeAttached)))
	l.now = stopped.Add(time.Hour + time.Minute)
	g.Expect(Next(l.facts(), l.now)).To(HaveField("Reason", ReasonRecreateTimedOut))
}

// TestRetiredVolumeIsNotTakenBack: the held volume is being deleted by a user. The claim
// is made from the snapshot, also where its template is what that volume is.
func TestRetiredVolumeIsNotTakenBack(t *testing.T) {
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeleteClaim")
	l.stored["pv-1"].DeletionTimestamp = l.deleted()
	l.wants("slow")
	l.settle()
	l.expectOn("pv-2", "slow")
}

// TestBeingBound: a claim that has got its volume is neither deleted nor given another,
// whatever becomes of its snapshot and of the time.
func TestBeingBound(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.stuck = true
	l.wants("fast")
	l.until("CreateClaim")
	l.claim.Spec.VolumeName = "pv-9"
	l.now = l.now.Add(time.Hour)
	g.Expect(Next(l.facts(), l.now)).To(And(HaveField("Action", Wait), HaveField("PodMayRun", true)))
	clear(l.snapshots)
	g.Expect(Next(l.facts(), l.now)).To(And(HaveField("Action", Wait), HaveField("PodMayRun", true)))
}

// TestClaimByHand: a user creates the claim after the template when it is missing. It has
// nothing of what was written.
func TestClaimByHand(t *testing.T) {
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeleteClaim")
	l.turn()
	l.createClaim(l.template)
	l.settle()
	l.expectOn("pv-2", "fast")

	l = newRecreated(t)
	l.undo("previous")
	l.until("DeleteClaim")
	l.turn()
	l.createClaim(l.template)
	l.settle()
	l.expectBack("pv-2", "fast", "pv-3", "pv-1")
}

// TestClaimIsDeletedByHand: a user deletes the claim while its pod runs, and before
// anything is saved. Nothing comes of the attempt.
func TestClaimIsDeletedByHand(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.wants("fast")
	l.until("CreateTrial")
	l.wrote()
	l.claim.DeletionTimestamp = l.deleted()
	g.Expect(l.advance()).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonClaimInUse)))
	g.Expect(l.wrote()).To(Equal([]string{"DeleteTrial", "Note"}))
	g.Expect(volumes.RecordOf(l.claim).Recreate).To(BeNil())
}

// TestClaimIsDeletedBeforeItsSnapshotIsTaken: there will be none any more, so the claim
// has its volume back at once.
func TestClaimIsDeletedBeforeItsSnapshotIsTaken(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.wants("fast")
	l.until("HoldVolume")
	l.failing = true
	l.until("CreateSnapshot")
	l.claim.DeletionTimestamp = l.deleted()
	before := l.now
	for range 10 {
		l.round()
	}
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	g.Expect(l.now).To(BeTemporally("<", before.Add(l.facts().timeout())), "it waited for nothing")
	g.Expect(l.failure()).To(BeEmpty())
	g.Expect(l.missing()).To(BeEmpty())
}
