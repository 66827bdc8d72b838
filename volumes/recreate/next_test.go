// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

func deletes(snapshot bool) func(*appsv1beta1.VolumeClaimRecreateStrategy) {
	return func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		if snapshot {
			r.Snapshot = appsv1beta1.DeleteRecreateRetention
		}
	}
}

func withoutSnapshot(r *appsv1beta1.VolumeClaimRecreateStrategy) {
	r.WithoutSnapshot = appsv1beta1.EmptyWithoutSnapshot
}

// TestRecreate: the whole of it, one write after the other.
func TestRecreate(t *testing.T) {
	for _, lazy := range []bool{false, true} {
		g := NewWithT(t)
		l := newLife(t, nil)
		l.lazy = lazy
		l.annotate("example.com/owner", "team")
		l.wants("fast")
		l.settle()
		g.Expect(l.wrote()).To(Equal([]string{
			"Note begin", "CreateTrial", "TryRestore", "Note", "EndRestore", "Note stop", "DeletePod", "Note", "HoldVolume pv-1", "CreateSnapshot", "DeleteTrial", "DeleteClaim",
			"CreateClaim from snapshot", "CreatePod",
			"HoldVolume pv-1", "Note",
		}))
		l.expectOn("pv-2", "fast")
		g.Expect(l.claim.Labels).To(HaveKeyWithValue("app", "sample"))
		g.Expect(l.claim.Annotations).To(HaveKeyWithValue("example.com/owner", "team"))
		g.Expect(l.heldBy()).To(HaveExactElements(And(
			HaveField("Name", "pv-1"), HaveField("Spec.PersistentVolumeReclaimPolicy", corev1.PersistentVolumeReclaimRetain),
			HaveField("State.ReclaimPolicy", corev1.PersistentVolumeReclaimDelete), HaveField("State.Recreate.Number", int64(1)),
		)))
		g.Expect(l.snapshots).To(HaveLen(1))

		// A rollback is another one, of what has been written since.
		l.wants("slow")
		l.settle()
		l.expectOn("pv-3", "slow")
		g.Expect(volumes.RecordOf(l.claim).HeldVolumes).To(HaveExactElements(
			And(HaveField("Name", "pv-2"), HaveField("Number", int64(2))), And(HaveField("Name", "pv-1"), HaveField("Number", int64(1)))))
		l.wrote()
		l.now = l.now.Add(1000 * time.Hour)
		l.settle()
		g.Expect(l.wrote()).To(BeEmpty(), "what is retained is so for ever")
	}
}

// TestRecreateWaits: nothing is saved or deleted before nothing writes any more.
func TestRecreateWaits(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.attaches, l.nodes = true, []string{"node-1"}
	l.wants("fast")
	l.rounds(20)
	g.Expect(l.wrote()).To(Equal([]string{"Note begin", "CreateTrial", "TryRestore", "Note", "EndRestore", "Note stop", "DeletePod"}))
	g.Expect(l.step).To(And(HaveField("Reason", ReasonVolumeAttached), HaveField("Message", ContainSubstring("node-1")), HaveField("PodMayRun", false)))
	l.nodes, l.others = nil, []string{"copy"}
	l.rounds(20)
	g.Expect(l.wrote()).To(Equal([]string{"Note", "DeleteTrial", "Note", "CreatePod"}), "another pod may stay for ever, and its own does not wait for that")
	l.others = nil
	l.settle()
	l.expectOn("pv-2", "fast")

	// A driver that attaches nothing does not tell when a node has unmounted the volume.
	l = newLife(t, nil)
	l.wants("fast")
	l.until("DeletePod")
	for !slices.Contains(l.wrote(), "CreateSnapshot") {
		l.reconcile()
		l.turn()
	}
	stopped := volumes.RecordOf(l.claim).Recreate.StoppedTimestamp
	g.Expect(l.now.Sub(stopped.Time)).To(BeNumerically(">=", unstagePeriod))
}

// TestRecreateFails: whatever fails, the pod is back on all that was written, and
// nothing is left over; and it is not tried again before what is wanted changes.
func TestRecreateFails(t *testing.T) {
	for name, test := range map[string]struct {
		fail   func(*life)
		heal   func(*life)
		reason string
		says   string
	}{
		"the snapshot is never ready": {
			func(l *life) { l.stalled = true }, func(l *life) { l.stalled = false }, ReasonRecreateTimedOut, "was not ready within 1m0s",
		},
		"the driver takes no snapshot": {
			func(l *life) { l.failing = true }, func(l *life) { l.failing = false }, ReasonRecreateTimedOut, "the driver refuses",
		},
		"the volume stays attached": {
			func(l *life) { l.attaches, l.nodes = true, []string{"node-1"} }, func(l *life) { l.nodes = nil }, ReasonRecreateTimedOut, "not detached",
		},
		"no volume is made": {
			func(l *life) { l.stuck = true }, func(l *life) { l.stuck = false }, ReasonRecreateTimedOut, "its events say why",
		},
		"nothing is restored on trial": {
			func(l *life) { l.stuckOnTrial = true }, func(l *life) { l.stuckOnTrial = false }, ReasonRecreateTimedOut, "restores its first snapshot on trial, had no volume within 1m0s",
		},
		"admission changes what is restored on trial": {
			func(l *life) {
				l.admission = func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = ptr.To("odd") }
			}, func(l *life) { l.admission = nil }, ReasonClaimRewritten, `its storage class is "odd"`,
		},
		"the API server refuses what is restored on trial": {
			func(l *life) { l.refuses = func(*corev1.PersistentVolumeClaim) string { return "forbidden by policy" } }, func(l *life) { l.refuses = nil },
			volumes.ReasonClaimRefused, "forbidden by policy",
		},
		"the snapshot is gone": {
			func(l *life) {
				l.until("DeleteClaim")
				clear(l.snapshots)
			}, func(*life) {}, ReasonSnapshotLost, "is gone",
		},
		"the snapshot is gone from under the new claim": {
			func(l *life) {
				l.stuck = true
				l.until("CreateClaim")
				clear(l.snapshots)
			}, func(l *life) { l.stuck = false }, ReasonSnapshotLost, "is gone",
		},
		"the snapshot is being deleted": {
			func(l *life) {
				l.stuck = true
				l.until("CreateClaim")
				for _, snapshot := range l.snapshots {
					snapshot.DeletionTimestamp = ptr.To(l.claim.CreationTimestamp)
				}
			}, func(l *life) { l.stuck = false }, ReasonSnapshotLost, "is gone",
		},
		"the name of the snapshot is taken": {
			func(l *life) {
				l.until("Note stop")
				a := *volumes.RecordOf(l.claim).Recreate
				taken := l.facts().newSnapshot(a.Snapshot, a.SnapshotClass)
				taken.Annotations = nil
				l.snapshots[taken.Name] = &storedSnapshot{VolumeSnapshot: taken}
			}, func(l *life) { clear(l.snapshots) }, ReasonSnapshotTaken, "another client",
		},
		"the name of the first snapshot is taken": {
			func(l *life) {
				l.until("Note begin")
				l.snapshots[volumes.RecordOf(l.claim).Recreate.Trial] = &storedSnapshot{VolumeSnapshot: l.theirs(volumes.RecordOf(l.claim).Recreate.Trial)}
			}, func(l *life) { clear(l.snapshots) }, ReasonSnapshotTaken, "another client",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, deletes(true))
			l.wants("fast")
			test.fail(l)
			for range 200 {
				l.round()
			}
			test.heal(l)
			l.settle()
			l.expectOnOld(test.reason)
			g.Expect(volumes.RecordOf(l.claim).RecreateFailure.Message).To(ContainSubstring(test.says))
			g.Expect(l.refused).To(Equal(test.reason), "it is not tried again")
			l.wrote()
			l.settle()
			g.Expect(l.wrote()).To(BeEmpty())

			l.strategy.Recreate.TimeoutSeconds = ptr.To[int32](61)
			l.settle()
			l.expectClean()
			g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("fast")))
			g.Expect(l.missing()).To(BeEmpty())
			g.Expect(l.failure()).To(BeEmpty())
		})
	}
}

// expectOnOld asserts that the claim has its first volume, and says why.
func (l *life) expectOnOld(reason string) {
	l.t.Helper()
	g := NewWithT(l.t)
	g.Expect(l.pod.IsReady()).To(BeTrue())
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	g.Expect(l.missing()).To(BeEmpty())
	g.Expect(l.failure()).To(Equal(reason))
	l.expectClean()
}

// interrupted is a life whose operator is killed after a number of writes of a
// recreation. The others go on for some turns.
func interrupted(t *testing.T, writes, turns int) *life {
	t.Helper()
	l := newLife(t, deletes(true))
	l.wants("fast")
	l.lives = writes
	for rounds := 0; l.lives > 0 && rounds < 60; rounds++ {
		l.round()
	}
	for range turns {
		l.turn()
	}
	l.lives = -1
	return l
}

// TestRecreateAnywhere: whatever happens after whichever write, nothing that was written
// is lost, and all comes to what is wanted by then.
func TestRecreateAnywhere(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*life)
		// class is what the claim is of in the end; empty if that depends.
		class string
	}{
		"nothing":                 {func(*life) {}, "fast"},
		"the template is back":    {func(l *life) { l.wants("slow") }, "slow"},
		"another template":        {func(l *life) { l.wants("third") }, "third"},
		"it leaves claims alone":  {func(l *life) { l.strategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType }, ""},
		"it is paused":            {func(l *life) { l.paused = true }, ""},
		"the pod is deleted":      {func(l *life) { l.pod = nil }, "fast"},
		"pods do not become well": {func(l *life) { l.sick = true; l.rounds(30); l.sick = false }, "fast"},
		"snapshots are off":       {func(l *life) { l.stalled = true; l.rounds(100); l.stalled = false }, ""},
		"no volumes are made":     {func(l *life) { l.stuck = true; l.rounds(100); l.stuck = false }, ""},
		"there is no such class":  {func(l *life) { l.wants("missing"); l.rounds(20); l.wants("slow") }, "slow"},
		"much time passes":        {func(l *life) { l.now = l.now.Add(24 * time.Hour) }, ""},
	} {
		for writes := range 15 {
			for _, turns := range []int{0, 20} {
				t.Run(fmt.Sprintf("%s/%d writes/%d turns", name, writes, turns), func(t *testing.T) {
					l := interrupted(t, writes, turns)
					test.change(l)
					l.settle()
					l.paused = false
					l.settle()
					l.expectClean()
					g := NewWithT(t)
					g.Expect(l.missing()).To(BeEmpty())
					if test.class != "" {
						g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal(test.class)))
					}
				})
			}
		}
	}
}

// TestRecreateEmpty: where there is no snapshot, the data stays in the held volume.
func TestRecreateEmpty(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.template.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock)
	l.settle()
	g.Expect(l.refused).To(Equal(ReasonVolumeModeChanged))
	g.Expect(l.wrote()).To(BeEmpty())

	withoutSnapshot(l.strategy.Recreate)
	l.settle()
	g.Expect(l.wrote()).To(Equal([]string{
		"Note stop", "DeletePod", "Note", "HoldVolume pv-1", "DeleteClaim", "CreateClaim", "CreatePod", "HoldVolume pv-1", "Note",
	}))
	l.expectClean()
	g.Expect(l.claim.Spec).To(And(HaveField("VolumeMode", HaveValue(Equal(corev1.PersistentVolumeBlock))), HaveField("DataSource", BeNil())))
	g.Expect(l.missing()).NotTo(BeEmpty())
	g.Expect(l.lost()).To(BeEmpty())

	l.undo("previous")
	l.settle()
	l.expectClean()
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	g.Expect(l.claim.Spec.VolumeMode).To(BeNil())
	g.Expect(l.lost()).To(BeEmpty())
}

// TestLongGracePeriod: a pod may take longer to stop than a snapshot may.
func TestLongGracePeriod(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeletePod")
	l.others = []string{"sample-0"}
	l.rounds(100)
	g.Expect(l.step.Reason).To(Equal(ReasonClaimInUse))
	l.others = nil
	l.settle()
	g.Expect(l.failure()).To(BeEmpty())
	l.expectOn("pv-2", "fast")
}

// TestRevertedMeanwhile: a claim without a volume gets its old one back where its template
// is what that is.
func TestRevertedMeanwhile(t *testing.T) {
	for _, write := range []string{"DeleteClaim", "CreateClaim", "CreatePod"} {
		l := newLife(t, deletes(true))
		l.stuck = true
		l.wants("fast")
		l.until(write)
		l.wants("slow")
		l.settle()
		l.expectOn("pv-1", "slow")
		NewWithT(t).Expect(l.failure()).To(BeEmpty(), write)
	}
}

// TestNotProved: what a claim says of a volume does not do, if the volume does not say so.
func TestNotProved(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		r.OldVolume, r.HoldSeconds = appsv1beta1.DeleteRecreateRetention, ptr.To[int32](0)
	})
	l.sick = true
	l.wants("fast")
	l.settle()
	record := volumes.RecordOf(l.claim)
	record.HeldVolumes[0].SinceTimestamp = ptr.To(l.claim.CreationTimestamp)
	setRecord(l.claim, record)
	l.settle()
	g.Expect(l.stored).To(HaveKey("pv-1"))
	g.Expect(l.lost()).To(BeEmpty())
}

// TestOnlyCopy: a volume of which there was no snapshot is kept, whatever is told.
func TestOnlyCopy(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		withoutSnapshot(r)
		r.OldVolume, r.Snapshot, r.HoldSeconds = appsv1beta1.DeleteRecreateRetention, appsv1beta1.DeleteRecreateRetention, ptr.To[int32](0)
	})
	l.notServed = true
	l.wants("fast")
	l.settle()
	l.expectClean()
	l.now = l.now.Add(100 * time.Hour)
	l.settle()
	g.Expect(l.stored).To(HaveKey("pv-1"))
	g.Expect(l.lost()).To(BeEmpty())
}

// TestDiscard: what is left is kept as told, and as long as told.
func TestDiscard(t *testing.T) {
	const (
		keep   = appsv1beta1.RetainRecreateRetention
		remove = appsv1beta1.DeleteRecreateRetention
	)
	for _, test := range []struct {
		volume, snapshot appsv1beta1.RecreateRetentionType
		want             []string
	}{
		{keep, keep, nil},
		{"", "", nil},
		{remove, keep, []string{"DiscardVolume pv-1", "Note"}},
		{keep, remove, []string{"DeleteSnapshot", "Note"}},
		{remove, remove, []string{"DeleteSnapshot", "DiscardVolume pv-1", "Note"}},
	} {
		t.Run(fmt.Sprintf("%s/%s", test.volume, test.snapshot), func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.OldVolume, r.Snapshot = test.volume, test.snapshot })
			l.sick = true
			l.wants("fast")
			l.settle()
			l.now = l.now.Add(100 * time.Hour)
			l.settle()
			g.Expect(slices.Contains(l.wrote(), "DiscardVolume pv-1")).To(BeFalse(), "nothing is proved by a pod that is not ready")
			l.sick = false
			l.settle()
			g.Expect(l.wrote()).To(Equal([]string{"HoldVolume pv-1", "Note"}))

			proved := volumes.RecordOf(l.claim).HeldVolumes[0].SinceTimestamp.Time
			l.now = proved.Add(99 * time.Second)
			l.reconcile()
			g.Expect(l.wrote()).To(BeEmpty())
			if _, until := IsBusy(l.claim, l.strategy, l.now); test.want != nil {
				g.Expect(until).To(Equal(proved.Add(100 * time.Second)))
			} else {
				g.Expect(until).To(BeZero())
			}
			l.now = proved.Add(100 * time.Second)
			l.settle()
			g.Expect(l.wrote()).To(Equal(test.want))
			g.Expect(l.missing()).To(BeEmpty())
			l.expectClean()
			g.Expect(l.stored).To(HaveLen(map[bool]int{true: 1, false: 2}[test.volume == remove]))
			g.Expect(l.snapshots).To(HaveLen(map[bool]int{true: 0, false: 1}[test.snapshot == remove]))
		})
	}
}
