// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// supplanted returns the life of a claim that was deleted to be recreated, and that
// another client created before the operator did. Kubernetes has bound it at once.
func supplanted(t *testing.T, change func(*appsv1beta1.VolumeClaimRecreateStrategy), theirs func(*life) *corev1.PersistentVolumeClaim) *life {
	t.Helper()
	l := newLife(t, change)
	l.wants("fast")
	l.until("DeleteClaim")
	l.turn()
	NewWithT(t).Expect(l.claim).To(BeNil(), "it is gone")
	l.createClaim(theirs(l))
	l.turn()
	NewWithT(t).Expect(l.claim.Status.Phase).To(Equal(corev1.ClaimBound))
	l.wrote()
	return l
}

func byTemplate(l *life) *corev1.PersistentVolumeClaim { return l.template }

// TestClaimOfAnotherClientIsBound: a claim that a person or GitOps creates in the window,
// and that binds, has nothing of what was written. No pod starts on it.
func TestClaimOfAnotherClientIsBound(t *testing.T) {
	removes := func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		r.OldVolume, r.Snapshot, r.HoldSeconds = appsv1beta1.DeleteRecreateRetention, appsv1beta1.DeleteRecreateRetention, ptr.To[int32](0)
	}
	withheld := func(t *testing.T) *life {
		t.Helper()
		l := supplanted(t, removes, byTemplate)
		l.rounds(20)
		g := NewWithT(t)
		g.Expect(l.pod).To(BeNil(), "no pod starts on an empty volume")
		g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-2"))
		g.Expect(l.step).To(And(HaveField("Reason", ReasonVolumeNotRestored), HaveField("PodMayRun", false), HaveField("Message", And(
			ContainSubstring("volume pv-1 has the data"),
			ContainSubstring("set annotation insitu.dev/undo-recreate=pv-1"),
			ContainSubstring("set insitu.dev/begin-empty=true"),
		))))
		return l
	}
	t.Run("the volume is asked back", func(t *testing.T) {
		for _, asked := range []string{"previous", "pv-1"} {
			l := withheld(t)
			l.undo(asked)
			l.settle()
			g := NewWithT(t)
			g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
			g.Expect(l.missing()).To(BeEmpty())
			g.Expect(l.failure()).To(Equal(ReasonRecreateUndone))
			g.Expect(l.stored).To(HaveKey("pv-2"), "what another client may have written is held")
			g.Expect(l.pod.IsReady()).To(BeTrue())
			g.Expect(volumes.RecordOf(l.claim).HeldVolumes).To(ConsistOf(HaveField("Name", "pv-2")))
		}
	})
	t.Run("another volume is asked for", func(t *testing.T) {
		l := withheld(t)
		l.undo("pv-7")
		l.rounds(5)
		g := NewWithT(t)
		g.Expect(l.pod).To(BeNil())
		g.Expect(l.step).To(And(HaveField("Reason", ReasonUndoRefused), HaveField("Message", ContainSubstring("there are pv-1"))))
		l.undo("pv-1")
		l.settle()
		g.Expect(l.missing()).To(BeEmpty())
	})
	t.Run("it is to begin empty", func(t *testing.T) {
		l := withheld(t)
		before := l.acknowledged
		l.annotate(appsv1beta1.BeginEmptyAnnotation, "true")
		l.settle()
		l.now = l.now.Add(time.Hour)
		l.settle()
		g := NewWithT(t)
		g.Expect(l.pod.IsReady()).To(BeTrue())
		g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-2"))
		g.Expect(l.missing()).To(HaveLen(before), "what was written before")
		g.Expect(l.lost()).To(BeEmpty(), "its volume is the only copy, and stays although oldVolume is Delete")
		g.Expect(volumes.RecordOf(l.claim).HeldVolumes).To(ConsistOf(And(HaveField("Name", "pv-1"), HaveField("SinceTimestamp", Not(BeNil())))))
		g.Expect(l.step.Reason).To(BeEmpty())
	})
	t.Run("it is deleted again", func(t *testing.T) {
		l := withheld(t)
		l.claim.DeletionTimestamp = l.deleted()
		l.settle()
		g := NewWithT(t)
		g.Expect(l.pod.IsReady()).To(BeTrue())
		g.Expect(l.missing()).To(BeEmpty(), "it is recreated from the snapshot")
	})
}

// TestClaimOfAnotherClientBeginsEmpty: a user deletes a claim in the middle and creates it
// with the annotation: it begins empty, also where volumes are made for pods only.
func TestClaimOfAnotherClientBeginsEmpty(t *testing.T) {
	l := newLife(t, nil)
	l.lazy = true
	l.wants("fast")
	l.until("DeleteClaim")
	l.turn()
	before := l.acknowledged
	claim := l.template.DeepCopy()
	claim.Annotations = map[string]string{appsv1beta1.BeginEmptyAnnotation: "true"}
	l.createClaim(claim)
	uid := l.claim.UID
	l.settle()
	g := NewWithT(t)
	g.Expect(l.claim.UID).To(Equal(uid), "it is that of the user")
	g.Expect(l.pod.IsReady()).To(BeTrue())
	g.Expect(l.missing()).To(HaveLen(before))
	g.Expect(l.lost()).To(BeEmpty())

	l.wants("third")
	l.settle()
	g.Expect(l.claim.Annotations).NotTo(HaveKey(appsv1beta1.BeginEmptyAnnotation), "the next claim has its data")
	g.Expect(l.missing()).To(HaveLen(before))
}

// TestClaimOfAnotherClientIsRestored: a claim that lost our record, or that another client
// made from the same snapshot, has the data. Its pod starts.
func TestClaimOfAnotherClientIsRestored(t *testing.T) {
	l := supplanted(t, nil, func(l *life) *corev1.PersistentVolumeClaim {
		claim := l.facts().newClaim(InFlight(l.heldFor()))
		delete(claim.Annotations, appsv1beta1.VolumeClaimUpdateStateKey)
		return claim
	})
	l.settle()
	l.expectOn("pv-2", "fast")
}

// TestRecordOfAnotherClaim: a claim that is created from what was exported of the one
// before has its annotations. They say nothing about this claim.
func TestRecordOfAnotherClaim(t *testing.T) {
	exported := map[string]string{}
	l := newLife(t, nil)
	l.wants("fast")
	l.until("HoldVolume")
	maps.Copy(exported, l.claim.Annotations)
	NewWithT(t).Expect(volumes.RecordOf(l.claim).Recreate).NotTo(BeNil())
	l.until("DeleteClaim")
	l.turn()
	claim := l.template.DeepCopy()
	claim.Annotations = exported
	l.createClaim(claim)
	l.turn()
	l.rounds(20)
	g := NewWithT(t)
	g.Expect(l.pod).To(BeNil())
	g.Expect(l.step.Reason).To(Equal(ReasonVolumeNotRestored))
	l.undo("previous")
	l.settle()
	g.Expect(l.missing()).To(BeEmpty())
}

// countOf returns how often the operator has made a write.
func (l *life) countOf(write string) int {
	n := 0
	for _, w := range l.log {
		if w == write {
			n++
		}
	}
	return n
}

// TestAdmissionChangesTheClaim: what admission does to a claim it does to the next one. It
// is tried once, and the data is there in the end.
func TestAdmissionChangesTheClaim(t *testing.T) {
	otherClass := func(claim *corev1.PersistentVolumeClaim) {
		if claim.Spec.VolumeName == "" {
			claim.Spec.StorageClassName = ptr.To("odd")
		}
	}
	noSource := func(claim *corev1.PersistentVolumeClaim) { claim.Spec.DataSource = nil }
	for name, test := range map[string]struct {
		admission    func(*corev1.PersistentVolumeClaim)
		slow         bool // Kubernetes does not bind before the operator looks
		volume, says string
	}{
		"another class, bound at once":  {otherClass, false, "pv-2", `its storage class is "odd", the template says "fast"`},
		"another class, bound later":    {otherClass, true, "pv-1", `its storage class is "odd", the template says "fast"`},
		"no data source, bound at once": {noSource, false, "pv-1", "it does not start from snapshot"},
		"no data source, bound later":   {noSource, true, "pv-1", "it does not start from snapshot"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLife(t, nil)
			l.wants("fast")
			l.until("DeleteClaim")
			l.admission, l.stuck = test.admission, test.slow
			l.until("CreateClaim")
			l.turn()
			l.settle()
			l.now = l.now.Add(time.Hour)
			l.settle()
			g := NewWithT(t)
			g.Expect(l.pod.IsReady()).To(BeTrue())
			g.Expect(l.claim.Spec.VolumeName).To(Equal(test.volume))
			g.Expect(l.missing()).To(BeEmpty())
			g.Expect(volumes.RecordOf(l.claim).RecreateFailure).To(And(HaveField("Reason", ReasonClaimRewritten), HaveField("Message", ContainSubstring(test.says))))
			g.Expect(l.countOf("CreateTrial")).To(Equal(1), "it is not tried again")
			g.Expect(l.refused).To(BeElementOf(ReasonClaimRewritten, ""))

			l.admission, l.stuck = nil, false
			l.wants("third")
			l.settle()
			g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("third")), "another template is tried")
			g.Expect(l.missing()).To(BeEmpty())
		})
	}
}

// TestAdmissionKeepsTheOldVolumeAway: a claim that admission gives another class cannot be
// bound to its old volume. It is created again after a minute, then less and less often up to
// every five minutes, until it can.
func TestAdmissionKeepsTheOldVolumeAway(t *testing.T) {
	l := newLife(t, nil)
	l.stuck = true
	l.wants("fast")
	l.until("CreateClaim from snapshot")
	l.admission = func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = ptr.To("odd") }
	l.undo("previous")
	l.rounds(10)
	g := NewWithT(t)
	g.Expect(l.step).To(And(HaveField("Reason", ReasonClaimRewritten), HaveField("Message", ContainSubstring(`its storage class is "odd", the volume is of class "slow"`))))
	l.wrote()
	l.rounds(3600)
	g.Expect(l.countOf("CreateClaim on pv-1")).To(BeNumerically("~", 13, 2), "in an hour")
	l.admission = nil
	l.rounds(310)
	l.stuck = false
	l.settle()
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	g.Expect(l.missing()).To(BeEmpty())
}

// TestClassByAnnotation: a template may name its class by the annotation of Kubernetes
// 1.4. The new claim has that class.
func TestClassByAnnotation(t *testing.T) {
	l := newLife(t, nil)
	l.template.Spec.StorageClassName = nil
	l.template.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: "fast"}
	l.settle()
	l.expectOn("pv-2", "fast")
	NewWithT(t).Expect(l.countOf("CreateTrial")).To(Equal(1))
}

// TestAttributesClassIsKept: a template that no longer names a VolumeAttributesClass takes
// none off a claim, also when the claim is recreated.
func TestAttributesClassIsKept(t *testing.T) {
	l := newLife(t, nil)
	l.stored["pv-1"].Spec.VolumeAttributesClassName = ptr.To("gold")
	l.wants("fast")
	l.settle()
	NewWithT(t).Expect(l.claim.Spec.VolumeAttributesClassName).To(HaveValue(Equal("gold")))

	l.template.Spec.VolumeAttributesClassName = ptr.To("silver")
	l.wants("third")
	l.settle()
	NewWithT(t).Expect(l.claim.Spec.VolumeAttributesClassName).To(HaveValue(Equal("silver")))
}

// TestHeldVolumeIsDeletedByHand: the snapshot of a volume that a user has deleted goes in
// its time, and nothing names either any more.
func TestHeldVolumeIsDeletedByHand(t *testing.T) {
	for _, write := range []string{"CreatePod", "HoldVolume pv-1"} {
		l := newLife(t, deletes(true))
		l.stuck = true
		l.wants("fast")
		l.until("CreateClaim")
		l.wrote()
		l.stuck = false
		l.until(write)
		delete(l.stored, "pv-1")
		l.settle()
		l.now = l.now.Add(time.Hour)
		l.settle()
		g := NewWithT(t)
		g.Expect(l.pod.IsReady()).To(BeTrue())
		g.Expect(l.snapshots).To(BeEmpty())
		g.Expect(volumes.RecordOf(l.claim).HeldVolumes).To(BeEmpty())
		g.Expect(l.missing()).To(BeEmpty())
	}
}

// deletedInTheMiddle returns the life of a claim whose StatefulSet was deleted when the
// claim was gone, and created again under the same name.
func deletedInTheMiddle(t *testing.T) *life {
	t.Helper()
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeleteClaim")
	l.turn()
	l.owner = "set-2"
	l.rounds(20)
	g := NewWithT(t)
	g.Expect(l.claim).To(BeNil())
	g.Expect(l.pod).To(BeNil())
	g.Expect(l.step).To(And(HaveField("Reason", ReasonHeldForAnother), HaveField("PodMayRun", false), HaveField("Message", And(
		ContainSubstring("kubectl annotate pv pv-1 insitu.dev/take-over=set-2"), ContainSubstring("insitu.dev/begin-empty=true"),
	))))
	return l
}

func (l *life) takeOver(volume string) {
	metav1.SetMetaDataAnnotation(&l.stored[volume].ObjectMeta, appsv1beta1.TakeOverAnnotation, string(l.owner))
}

// TestVolumeOfAnotherWorkload: a StatefulSet that is created under the name of one that was
// deleted does not get the data of that, unless a user says so.
func TestVolumeOfAnotherWorkload(t *testing.T) {
	t.Run("it is taken over", func(t *testing.T) {
		l := deletedInTheMiddle(t)
		l.takeOver("pv-1")
		l.settle()
		l.expectOn("pv-2", "fast")
	})
	t.Run("it was taken over by another one", func(t *testing.T) {
		l := deletedInTheMiddle(t)
		l.takeOver("pv-1")
		l.owner = "set-3"
		l.rounds(5)
		NewWithT(t).Expect(l.step.Reason).To(Equal(ReasonHeldForAnother))
	})
	t.Run("the new one begins empty", func(t *testing.T) {
		l := deletedInTheMiddle(t)
		claim := l.template.DeepCopy()
		claim.Annotations = map[string]string{appsv1beta1.BeginEmptyAnnotation: "true"}
		before := l.acknowledged
		l.createClaim(claim)
		l.settle()
		g := NewWithT(t)
		g.Expect(l.pod.IsReady()).To(BeTrue())
		g.Expect(l.missing()).To(HaveLen(before))
		g.Expect(l.lost()).To(BeEmpty())

		l.undo("previous")
		l.rounds(5)
		g.Expect(l.refused).To(Equal(ReasonHeldForAnother))
		l.takeOver("pv-1")
		l.settle()
		g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	})
	t.Run("a user creates its claim", func(t *testing.T) {
		l := deletedInTheMiddle(t)
		l.stuck = true
		l.createClaim(l.template)
		uid := l.claim.UID
		l.rounds(10)
		g := NewWithT(t)
		g.Expect(l.claim.UID).To(Equal(uid), "it is not deleted")
		g.Expect(l.pod).To(BeNil())
		g.Expect(l.step.Reason).To(Equal(ReasonHeldForAnother))
		l.stuck = false
		l.rounds(10)
		g.Expect(l.step.Reason).To(Equal(ReasonVolumeNotRestored))
		l.annotate(appsv1beta1.BeginEmptyAnnotation, "true")
		l.settle()
		g.Expect(l.pod.IsReady()).To(BeTrue())
	})
}

// TestClaimIsRefused: a LimitRange or a policy refuses the new claim. The pod is away
// meanwhile, so the claim gets its old volume back soon.
func TestClaimIsRefused(t *testing.T) {
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeleteClaim")
	l.refuses = func(claim *corev1.PersistentVolumeClaim) string {
		if *claim.Spec.StorageClassName == "fast" {
			return "class fast is forbidden here"
		}
		return ""
	}
	l.rounds(20)
	g := NewWithT(t)
	g.Expect(l.claim).To(BeNil())
	g.Expect(l.step).To(And(HaveField("Reason", volumes.ReasonClaimRefused), HaveField("Message", ContainSubstring("class fast is forbidden here"))))
	since := l.now
	for l.pod == nil && l.now.Before(since.Add(time.Hour)) {
		l.round()
	}
	g.Expect(l.now).To(BeTemporally("<", since.Add(3*time.Minute)), "the pod is soon back")
	l.settle()
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	g.Expect(l.missing()).To(BeEmpty())
	g.Expect(volumes.RecordOf(l.claim).RecreateFailure).To(And(HaveField("Reason", volumes.ReasonClaimRefused), HaveField("Message", ContainSubstring("class fast is forbidden here"))))
	g.Expect(l.refused).To(Equal(volumes.ReasonClaimRefused), "it is not tried again")

	l.wants("third")
	l.settle()
	l.expectOn("pv-2", "third")
}

// TestClaimIsRefusedForAMoment: a webhook that is down for a moment ends nothing.
func TestClaimIsRefusedForAMoment(t *testing.T) {
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeleteClaim")
	until := l.now.Add(100 * time.Second)
	l.refuses = func(*corev1.PersistentVolumeClaim) string {
		if l.now.Before(until) {
			return "failed calling webhook"
		}
		return ""
	}
	l.settle()
	l.expectOn("pv-2", "fast")
}
