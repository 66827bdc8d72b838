// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// keptFacts are what a cluster shows of a life.
func (l *life) keptFacts() KeptFacts {
	facts := KeptFacts{
		Claim: func(name string) *corev1.PersistentVolumeClaim {
			if l.claim == nil || l.claim.Name != name {
				return nil
			}
			return l.claim
		},
		Strategy: func(owner types.UID, _ string) (appsv1beta1.VolumeClaimUpdateStrategy, bool) {
			return l.strategy, owner == l.owner || owner == ""
		},
	}
	for name := range l.stored {
		facts.Volumes = append(facts.Volumes, *l.volume(name))
	}
	for _, snapshot := range l.snapshots {
		facts.Snapshots = append(facts.Snapshots, *snapshot.VolumeSnapshot)
	}
	return facts
}

// kept says what is kept: "volume pv-1 Retained".
func (l *life) kept() []string {
	var words []string
	for _, kept := range Keep(l.keptFacts(), l.now) {
		what := "snapshot"
		if kept.Volume != nil {
			what = "volume " + kept.Name()
		}
		words = append(words, fmt.Sprintf("%s %s", what, kept.State))
	}
	return words
}

func TestKept(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	g.Expect(l.kept()).To(BeEmpty())
	l.wants("fast")
	l.until("CreateTrial")
	g.Expect(l.kept()).To(BeEmpty(), "the snapshot of a trial goes with that")
	l.until("CreateClaim")
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Needed", "snapshot Needed"))
	l.settle()
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Retained", "snapshot Retained"))

	set := l.strategy.Recreate
	set.OldVolume = appsv1beta1.DeleteRecreateRetention
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Held", "snapshot Retained"))
	set.Snapshot = appsv1beta1.DeleteRecreateRetention
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Held", "snapshot Held"))
	l.now = l.now.Add(time.Duration(*l.strategy.GetRecreate().HoldSeconds)*time.Second + time.Hour)
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Overdue", "snapshot Overdue"))
	l.strategy.Recreate.Snapshot = ""
	l.settle()
	g.Expect(l.kept()).To(ConsistOf("snapshot Retained"), "the volume has gone, and nothing notes the snapshot")
	l.strategy.Recreate.Snapshot = appsv1beta1.DeleteRecreateRetention
	g.Expect(l.kept()).To(ConsistOf("snapshot Overdue"), "the manager does not look at it any more")
}

// TestKeptOfASetThatIsGone: nothing of it is looked at, and what has a new set of the name is
// its own.
func TestKeptOfASetThatIsGone(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, deletes(true))
	l.wants("fast")
	l.settle()
	l.owner = "another"
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Orphaned", "snapshot Orphaned"))
	l.owner = "set-1"
	l.strategy.Recreate.OldVolume = appsv1beta1.DeleteRecreateRetention
	l.now = l.now.Add(1000 * time.Hour)
	l.settle()
	g.Expect(l.kept()).To(BeEmpty(), "it goes, and no user has to look")
}

// TestKeptOfAnUndo: the newer volume is the only one with what was written to it, and the
// one that a user asks for is needed.
func TestKeptOfAnUndo(t *testing.T) {
	g := NewWithT(t)
	l := newRecreated(t)
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Retained", "snapshot Retained", "volume pv-2 Retained", "snapshot Retained"))
	l.undo("previous")
	g.Expect(l.kept()).To(ContainElements("volume pv-1 Retained", "volume pv-2 Needed"))
	l.strategy.Recreate.OldVolume = appsv1beta1.DeleteRecreateRetention
	l.settle()
	l.now = l.now.Add(1000 * time.Hour)
	g.Expect(l.kept()).To(ContainElement("volume pv-3 OnlyCopy"))
}

// TestKeptWithoutItsClaim: a claim that was deleted for good took with it what the operator
// knew; what should have gone is overdue.
func TestKeptWithoutItsClaim(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, func(r *appsv1beta1.VolumeClaimRecreateStrategy) { r.OldVolume = appsv1beta1.DeleteRecreateRetention })
	l.wants("fast")
	l.settle()
	l.claim = nil
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Held", "snapshot Retained"))
	l.now = l.now.Add(1000 * time.Hour)
	g.Expect(l.kept()).To(ConsistOf("volume pv-1 Overdue", "snapshot Retained"))
}

// TestWhatIsDeletedByHandIsForgotten: the record of the claim names nothing for ever that a
// user has deleted, or taken the marks off.
func TestWhatIsDeletedByHandIsForgotten(t *testing.T) {
	gone := func(l *life) bool {
		facts := l.keptFacts()
		return HasGone(l.claim, facts.Volumes, facts.Snapshots)
	}
	release := func(l *life, name string) {
		pv := l.stored[name]
		delete(pv.Annotations, appsv1beta1.HeldVolumeStateKey)
		delete(pv.Labels, appsv1beta1.ClaimLabel)
		pv.ResourceVersion = l.next("v")
	}
	for name, test := range map[string]struct {
		change func(*life)
		// volume and snapshot say what the record still names.
		volume, snapshot bool
	}{
		"nothing":                       {func(*life) {}, true, true},
		"the snapshot is deleted":       {func(l *life) { clear(l.snapshots) }, true, false},
		"the volume is deleted":         {func(l *life) { delete(l.stored, "pv-1") }, true, true},
		"both are deleted":              {func(l *life) { clear(l.snapshots); delete(l.stored, "pv-1") }, false, false},
		"the volume is released":        {func(l *life) { release(l, "pv-1") }, true, true},
		"the volume is released, alone": {func(l *life) { clear(l.snapshots); release(l, "pv-1") }, false, false},
		"the snapshot is released": {func(l *life) {
			for _, snapshot := range l.snapshots {
				snapshot.Annotations, snapshot.Labels = nil, nil
			}
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, nil)
			l.wants("fast")
			l.settle()
			g.Expect(gone(l)).To(BeFalse())
			test.change(l)
			l.settle()
			g.Expect(gone(l)).To(BeFalse(), "nothing looks at it again and again")
			record := volumes.RecordOf(l.claim).HeldVolumes
			switch {
			case test.snapshot:
				g.Expect(record).To(ConsistOf(And(HaveField("Name", "pv-1"), HaveField("Snapshot", Not(BeEmpty())))))
			case test.volume:
				g.Expect(record).To(ConsistOf(And(HaveField("Name", "pv-1"), HaveField("Snapshot", BeEmpty()))))
			default:
				g.Expect(record).To(BeEmpty())
			}
			g.Expect(l.claim.Spec.VolumeName).To(Equal("pv-2"))
			l.wrote()
			l.settle()
			g.Expect(l.wrote()).To(BeEmpty())
		})
	}
}

func TestSum(t *testing.T) {
	g := NewWithT(t)
	volume := func(name, size string, since time.Time, state KeptState) Kept {
		pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
		return Kept{Volume: &Volume{PersistentVolume: pv}, Claim: "data-sample-0", Since: since, State: state}
	}
	all := []Kept{
		volume("pv-1", "1Gi", start, KeptRetained), volume("pv-2", "512Mi", start.Add(-time.Hour), KeptOverdue),
		{Snapshot: newLife(t, nil).theirs("own"), Claim: "data-sample-0", Since: start, State: KeptOverdue},
	}
	every := func(Kept) bool { return true }
	g.Expect(Sum(all, func(Kept) bool { return false })).To(BeNil())
	g.Expect(Sum(all[2:], every)).To(HaveValue(And(HaveField("Snapshots", int32(1)), HaveField("Capacity", BeNil()))))
	sum := Sum(all, every)
	g.Expect(sum).To(HaveValue(And(HaveField("Volumes", int32(2)), HaveField("Snapshots", int32(1)), HaveField("Overdue", int32(2)))))
	g.Expect(sum.Capacity.String()).To(Equal("1536Mi"))
	g.Expect(sum.OldestTimestamp.Time).To(BeTemporally("==", start.Add(-time.Hour)))

	claims := []appsv1beta1.VolumeClaimStatus{{VolumeClaimName: "a", Kept: sum}, {VolumeClaimName: "b"}, {VolumeClaimName: "c", Kept: &appsv1beta1.VolumeClaimKeptStatus{
		Snapshots: 1, OldestTimestamp: ptr.To(metav1.NewTime(start.Add(-2 * time.Hour))),
	}}}
	g.Expect(appsv1beta1.SumKept(claims[1:2])).To(BeNil())
	of := appsv1beta1.SumKept(claims)
	g.Expect(of).To(HaveValue(And(HaveField("Volumes", int32(2)), HaveField("Snapshots", int32(2)), HaveField("Overdue", int32(2)))))
	g.Expect(of.Capacity.String()).To(Equal("1536Mi"))
	g.Expect(of.OldestTimestamp.Time).To(BeTemporally("==", start.Add(-2*time.Hour)))
	g.Expect(sum.OldestTimestamp.Time).To(BeTemporally("==", start.Add(-time.Hour)), "it is not changed")
}

// TestKeptWhileItIsNeeded: what a claim is about to be made from is needed, whatever a user
// has deleted by hand meanwhile.
func TestKeptWhileItIsNeeded(t *testing.T) {
	t.Run("the snapshot of a volume that is being deleted", func(t *testing.T) {
		l := newLife(t, nil)
		l.wants("fast")
		l.until("DeleteClaim")
		l.stuck = true
		l.rounds(5)
		l.stored["pv-1"].DeletionTimestamp = l.deleted()
		NewWithT(t).Expect(l.kept()).To(ContainElement("snapshot Needed"))
	})
	t.Run("a volume that is given back, while there is no claim", func(t *testing.T) {
		g := NewWithT(t)
		l := newLife(t, nil)
		l.wants("fast")
		l.settle()
		l.wrote()
		l.undo("previous")
		l.until("DeleteClaim")
		l.turn()
		g.Expect(l.claim).To(BeNil())
		g.Expect(l.kept()).To(ContainElement("volume pv-1 Needed"))
	})
}
