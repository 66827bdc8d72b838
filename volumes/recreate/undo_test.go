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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// newRecreated returns the life of a claim that was recreated twice: of class third on
// pv-3, after slow on pv-1 and fast on pv-2.
func newRecreated(t *testing.T) *life {
	t.Helper()
	l := newLife(t, nil)
	for i, class := range []string{"fast", "third"} {
		l.wants(class)
		l.settle()
		l.expectOn(fmt.Sprintf("pv-%d", i+2), class)
	}
	l.wrote()
	return l
}

// expectBack asserts that the claim has an earlier volume back, with what was written
// to it before the others, and that the newer ones are held.
func (l *life) expectBack(volume, class string, held ...string) {
	l.t.Helper()
	g := NewWithT(l.t)
	l.expectClean()
	g.Expect(l.claim.Spec.VolumeName).To(Equal(volume))
	g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal(class)))
	names := []string{}
	for _, entry := range volumes.RecordOf(l.claim).HeldVolumes {
		names = append(names, entry.Name)
	}
	g.Expect(names).To(ConsistOf(held))
	g.Expect(l.lost()).To(BeEmpty())
	g.Expect(l.failure()).To(Equal(ReasonRecreateUndone))
	g.Expect(l.claim.Annotations).NotTo(HaveKey(appsv1beta1.UndoRecreateAnnotation))
}

func TestUndo(t *testing.T) {
	for name, test := range map[string]struct {
		wants, volume, class string
		held                 []string
		strategy             appsv1beta1.VolumeClaimUpdateStrategyType
	}{
		"the one before":         {"previous", "pv-2", "fast", []string{"pv-3", "pv-1"}, "Recreate"},
		"the one before by name": {"pv-2", "pv-2", "fast", []string{"pv-3", "pv-1"}, "Recreate"},
		"the first":              {"pv-1", "pv-1", "slow", []string{"pv-3", "pv-2"}, "Recreate"},
		"whatever the strategy":  {"previous", "pv-2", "fast", []string{"pv-3", "pv-1"}, "OnDelete"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newRecreated(t)
			l.strategy.Type = test.strategy
			l.undo(test.wants)
			l.settle()
			g.Expect(l.wrote()).To(Equal([]string{
				"Note stop", "DeletePod", "Note", "HoldVolume pv-3", "DeleteClaim", "FreeVolume " + test.volume, "CreateClaim on " + test.volume,
				"CreatePod", "ReleaseVolume " + test.volume, "Note", "HoldVolume pv-3", "Note",
			}))
			l.expectBack(test.volume, test.class, test.held...)
			g.Expect(l.missing()).NotTo(BeEmpty(), "what was written since is in the newer volume")
			g.Expect(l.stored["pv-3"].Spec.PersistentVolumeReclaimPolicy).To(Equal(corev1.PersistentVolumeReclaimRetain))
			l.strategy.Type = "Recreate"
			l.settle()
			g.Expect(l.wrote()).To(BeEmpty(), "it is not recreated for a template that was undone")
			g.Expect(l.refused).To(Equal(ReasonRecreateUndone))

			// Back to what it was before that.
			l.undo("pv-3")
			l.settle()
			l.expectBack("pv-3", "third", "pv-1", "pv-2")
			g.Expect(l.missing()).NotTo(BeEmpty())

			// Settled by a template that says so.
			l.wants("fast")
			l.settle()
			l.expectClean()
			g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("fast")))
			g.Expect(l.failure()).To(BeEmpty())
		})
	}
}

// TestUndoRefused: a volume that is not held for the claim is not given to it, and the
// pod is not stopped to find that out.
func TestUndoRefused(t *testing.T) {
	for _, wanted := range []string{"pv-9", "pv-3", "other"} {
		g := NewWithT(t)
		l := newRecreated(t)
		l.stored["other"] = &storedVolume{PersistentVolume: l.stored["pv-1"].DeepCopy()}
		l.stored["other"].Name = "other"
		delete(l.stored["other"].Annotations, appsv1beta1.HeldVolumeStateKey)
		l.undo(wanted)
		l.settle()
		g.Expect(l.wrote()).To(BeEmpty(), wanted)
		g.Expect(l.refused).To(Equal(ReasonUndoRefused))
		judgement := Preflight(l.preflight(false))
		g.Expect(judgement.Refused.Message).To(And(ContainSubstring(`"`+wanted+`"`), ContainSubstring("there are pv-2, pv-1")))

		delete(l.claim.Annotations, appsv1beta1.UndoRecreateAnnotation)
		l.wants("slow")
		l.settle()
		g.Expect(l.claim.Spec.StorageClassName).To(HaveValue(Equal("slow")), "and it does not stand in the way for ever")
	}
	g := NewWithT(t)
	l := newLife(t, nil)
	l.undo("previous")
	l.settle()
	g.Expect(l.wrote()).To(BeEmpty())
	g.Expect(Preflight(l.preflight(false)).Refused.Message).To(ContainSubstring("there is none"))
}

// TestUndoOfAVolumeThatGoes: a volume that is on its way out, or that another claim has,
// is not given back. No pod is stopped to find that out.
func TestUndoOfAVolumeThatGoes(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*life, *storedVolume)
		waits  bool
	}{
		"a user has set it to Delete": {func(_ *life, v *storedVolume) {
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
		}, true},
		"another claim has it":      {func(_ *life, v *storedVolume) { v.Spec.ClaimRef.Name, v.Spec.ClaimRef.UID = "other", "other" }, true},
		"another one's of the name": {func(_ *life, v *storedVolume) { v.Spec.ClaimRef.Namespace, v.Spec.ClaimRef.UID = "other", "other" }, true},
		"it has failed":             {func(_ *life, v *storedVolume) { v.Status.Phase = corev1.VolumeFailed }, true},
		"a user has deleted it":     {func(l *life, v *storedVolume) { v.DeletionTimestamp = l.deleted() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newRecreated(t)
			test.change(l, l.stored["pv-2"])
			l.undo("previous")
			l.reconcile()
			g.Expect(l.wrote()).To(BeEmpty())
			g.Expect(l.refused).To(Equal(ReasonUndoRefused))

			l = newRecreated(t)
			l.undo("previous")
			l.until("DeleteClaim")
			l.turn()
			l.wrote()
			test.change(l, l.stored["pv-2"])
			l.reconcile()
			if test.waits {
				g.Expect(l.wrote()).To(BeEmpty())
				g.Expect(l.step).To(And(HaveField("Action", Wait), HaveField("Reason", ReasonVolumeLost), HaveField("Message", ContainSubstring("reclaim policy Retain"))))
				delete(l.stored, "pv-2")
			}
			l.settle()
			g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-3"), "the one that it had last")
			g.Expect(l.pod.IsReady()).To(BeTrue())
		})
	}

	g := NewWithT(t)
	l := newRecreated(t)
	l.stored["pv-3"].DeletionTimestamp = l.deleted()
	l.undo("previous")
	l.settle()
	g.Expect(l.wrote()).To(BeEmpty(), "the volume that it has would go with the claim")
	g.Expect(l.refused).To(Equal(ReasonUndoRefused))
}

// TestUndoneStaysSo: the claim is not recreated again for an undo request that the user
// takes back.
func TestUndoneStaysSo(t *testing.T) {
	g := NewWithT(t)
	l := newRecreated(t)
	l.undo("previous")
	l.settle()
	l.undo("pv-3")
	l.wrote()
	l.until("DeletePod")
	delete(l.claim.Annotations, appsv1beta1.UndoRecreateAnnotation)
	l.settle()
	l.expectBack("pv-2", "fast", "pv-3", "pv-1")
	g.Expect(l.refused).To(Equal(ReasonRecreateUndone))
}

// TestUndoOfAClaimWithoutVolume: a claim that has none yet gets its old one back at
// once.
func TestUndoOfAClaimWithoutVolume(t *testing.T) {
	for _, wanted := range []string{"previous", "pv-1"} {
		g := NewWithT(t)
		l := newLife(t, deletes(true))
		l.stuck = true
		l.wants("fast")
		l.until("CreatePod")
		l.undo(wanted)
		l.rounds(20)
		l.expectOnOld(ReasonRecreateUndone)
		l.stuck = false
		l.settle()
		g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
		g.Expect(l.snapshots).To(BeEmpty())
	}
}

// TestUndoAnywhere: whatever happens after whichever write of an undo, nothing is lost.
func TestUndoAnywhere(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*life)
		volume string
	}{
		"nothing": {func(*life) {}, "pv-2"},
		"asked no more": {func(l *life) {
			if l.claim != nil {
				delete(l.claim.Annotations, appsv1beta1.UndoRecreateAnnotation)
			}
		}, ""},
		"asked for another": {func(l *life) {
			if l.claim != nil {
				l.undo("pv-1")
			}
		}, ""},
		"the volume is gone": {func(l *life) {
			if l.claim == nil || l.claim.Spec.VolumeName != "pv-2" {
				l.stored["pv-3"].data = append(l.stored["pv-3"].data, l.stored["pv-2"].data...) // it is not the operator that loses it
				delete(l.stored, "pv-2")
			}
		}, ""},
		"the volume is another's": {func(l *life) {
			if l.claim == nil || l.claim.Spec.VolumeName != "pv-2" {
				l.stored["pv-2"].Status.Phase = corev1.VolumeBound
				l.stored["pv-2"].Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "other", UID: "other"}
				delete(l.stored["pv-2"].Annotations, appsv1beta1.HeldVolumeStateKey)
			}
		}, ""},
		"the template is that of the volume": {func(l *life) { l.wants("fast") }, ""},
		"the template is that of the first":  {func(l *life) { l.wants("slow") }, ""},
		"it leaves claims alone":             {func(l *life) { l.strategy.Type = "OnDelete" }, "pv-2"},
	} {
		for writes := range 12 {
			t.Run(fmt.Sprintf("%s/%d writes", name, writes), func(t *testing.T) {
				l := newRecreated(t)
				l.undo("previous")
				l.lives = writes
				for rounds := 0; l.lives > 0 && rounds < 60; rounds++ {
					l.round()
				}
				l.lives = -1
				test.change(l)
				l.settle()
				g := NewWithT(t)
				g.Expect(l.pod.IsReady()).To(BeTrue(), "%v", l.log)
				g.Expect(l.lost()).To(BeEmpty())
				if test.volume != "" {
					l.expectClean()
					g.Expect(l.claim.Spec.VolumeName).To(Equal(test.volume))
				}
				g.Expect(volumes.RecordOf(l.claim).Recreate).To(BeNil())
			})
		}
	}
}

// TestFreedVolumeIsLocked: a volume that is free for claims of a name is bound to the
// next one, whatever that is to be made from.
func TestFreedVolumeIsLocked(t *testing.T) {
	g := NewWithT(t)
	l := newRecreated(t)
	l.undo("pv-1")
	l.until("FreeVolume pv-1")
	// The last that a dead operator asked for is a claim that the volume is too small for.
	l.template = templateOf("third", "2Gi")
	l.createClaim(l.facts().newClaim(InFlight(l.heldFor())))
	l.settle()
	g.Expect(l.wrote()).To(ContainElement("CreateClaim on pv-1"), "it has no volume that was asked for, and is recreated")
	l.expectBack("pv-1", "slow", "pv-2", "pv-3")

	l = newRecreated(t)
	l.wants("slow")
	l.until("DeleteClaim")
	l.stored["pv-1"].Spec.ClaimRef.UID, l.stored["pv-1"].Status.Phase = "", corev1.VolumeAvailable
	l.settle()
	g.Expect(l.wrote()).To(ContainElement("LockVolume pv-1"))
	l.expectOn("pv-4", "slow")
}

// TestNotRestored: a claim that got a volume that was there before it has not what is in
// its snapshot, and proves nothing.
func TestNotRestored(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) {
		r.OldVolume, r.HoldSeconds = appsv1beta1.DeleteRecreateRetention, ptr.To[int32](0)
	})
	l.stuck = true
	l.wants("fast")
	l.until("CreatePod")
	stale := l.stored["pv-1"].DeepCopy()
	stale.Name, stale.Annotations, stale.Spec.ClaimRef = "stale", nil, nil
	stale.CreationTimestamp.Time = start.Add(-time.Hour)
	l.stored["stale"] = &storedVolume{PersistentVolume: stale}
	l.bound(l.stored["stale"])
	l.rounds(30)
	g.Expect(l.step).To(And(HaveField("Reason", ReasonVolumeNotRestored), HaveField("PodMayRun", true),
		HaveField("Message", And(ContainSubstring("volume stale"), ContainSubstring("volume pv-1 has the data")))))
	g.Expect(l.stored).To(HaveKey("pv-1"))
	g.Expect(slices.Contains(l.wrote(), "DiscardVolume pv-1")).To(BeFalse())

	l.strategy.Recreate.OldVolume = appsv1beta1.RetainRecreateRetention
	l.undo("previous")
	l.settle()
	g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-1"))
	g.Expect(l.lost()).To(BeEmpty())
}

// TestSizes: a claim that is recreated is never smaller than what it is made from.
func TestSizes(t *testing.T) {
	for name, test := range map[string]struct {
		template, capacity, restore, limit string
		want                               string
		limited                            bool
	}{
		"as it was":                      {"1Gi", "1Gi", "1Gi", "", "1Gi", false},
		"the template wants more":        {"3Gi", "1Gi", "1Gi", "", "3Gi", false},
		"it has grown":                   {"1Gi", "2Gi", "2Gi", "", "2Gi", false},
		"restored to less":               {"1Gi", "2Gi", "1500Mi", "", "2Gi", false},
		"restored to more":               {"1Gi", "1Gi", "1025Mi", "", "1025Mi", false},
		"the snapshot tells nothing":     {"1Gi", "2Gi", "", "", "2Gi", false},
		"the snapshot tells zero":        {"1Gi", "2Gi", "0", "", "2Gi", false},
		"the limit is below what it has": {"1Gi", "2Gi", "2Gi", "1Gi", "2Gi", false},
		"the limit leaves room":          {"1Gi", "2Gi", "2Gi", "4Gi", "2Gi", true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, nil)
			l.stored["pv-1"].Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(test.capacity)
			l.template = templateOf("fast", test.template)
			if test.limit != "" {
				l.template.Spec.Resources.Limits = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(test.limit)}
			}
			l.until("DeleteClaim")
			for _, snapshot := range l.snapshots {
				if snapshot.Status.RestoreSize = nil; test.restore != "" {
					snapshot.Status.RestoreSize = ptr.To(resource.MustParse(test.restore))
				}
			}
			l.stuck = true
			l.until("CreateClaim")
			g.Expect(l.claim.Spec.Resources.Requests.Storage().String()).To(Equal(test.want))
			g.Expect(l.claim.Spec.Resources.Limits != nil).To(Equal(test.limited))
			g.Expect(l.template.Spec.Resources.Requests.Storage().String()).To(Equal(test.template), "the template is only read")
		})
	}
}
