// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestNoTimeThatIsOver: a step that waits names no time that is over. The controller would
// look again without a pause.
func TestNoTimeThatIsOver(t *testing.T) {
	t.Run("a snapshot that was created long after the pod was stopped", func(t *testing.T) {
		l := newLife(t, nil)
		l.wants("fast")
		l.until("HoldVolume")
		l.stalled = true
		for range 200 {
			l.round()
			if l.step.Action == Wait && !l.step.Until.IsZero() {
				NewWithT(t).Expect(l.step.Until).To(BeTemporally(">=", l.now.Add(-time.Second)), l.step.Message)
			}
		}
	})
	t.Run("the held volume is being deleted, and the snapshot is never ready", func(t *testing.T) {
		g := NewWithT(t)
		l := newLife(t, nil)
		l.wants("fast")
		l.until("HoldVolume")
		l.stalled = true
		l.until("CreateSnapshot")
		l.turn()
		l.claim.Finalizers, l.claim.DeletionTimestamp = nil, l.deleted() // a user deletes claim and volume
		l.turn()
		g.Expect(l.claim).To(BeNil())
		l.stored["pv-1"].DeletionTimestamp = l.deleted()
		l.now = l.now.Add(time.Hour)
		step := Next(l.facts(), l.now)
		g.Expect(step.Reason).To(Equal(ReasonSnapshotNotReady))
		g.Expect(step.Until).To(Or(BeZero(), BeTemporally(">", l.now)))
	})
}

// TestAdmissionThatKeepsChangingTheClaim: a claim is not deleted and created without end. It
// gets its old volume back, once admission lets that be.
func TestAdmissionThatKeepsChangingTheClaim(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, nil)
	l.wants("fast")
	l.until("DeleteClaim")
	l.stuck = true
	created := 0
	l.admission = func(claim *corev1.PersistentVolumeClaim) {
		created++
		claim.Spec.StorageClassName, claim.Annotations = ptr.To("gold"), nil
	}
	l.rounds(600)
	g.Expect(created).To(BeNumerically("<", 16), "in ten minutes")
	l.admission, l.stuck = nil, false
	l.now = l.now.Add(time.Hour)
	l.settle()
	l.expectOnOld(ReasonClaimRewritten)
}

// TestRefusedOnceLongAgo: for how long a claim is refused is counted from the present refusal,
// not from one that has passed.
func TestRefusedOnceLongAgo(t *testing.T) {
	g := NewWithT(t)
	l := newLife(t, patient)
	l.wants("fast")
	l.until("DeleteClaim")
	l.stuck = true
	refuse := func(*corev1.PersistentVolumeClaim) string { return "exceeded quota" }
	l.refuses = refuse
	l.rounds(5)
	g.Expect(l.volume("pv-1").State.RefusedTimestamp).NotTo(BeNil())
	l.refuses = nil
	l.rounds(200) // it is accepted, and its volume is being made
	g.Expect(l.claim).NotTo(BeNil())
	l.claim.DeletionTimestamp = l.deleted() // by a person, or GitOps
	l.turn()
	l.refuses = refuse
	l.rounds(5)
	l.refuses, l.stuck = nil, false
	l.settle()
	g.Expect(l.failure()).To(BeEmpty(), "it was refused for five seconds")
	l.expectOn("pv-2", "fast")
}

// TestNotBackToAVolumeThatIsBeingDeleted: a claim whose snapshot is ready waits for a volume
// from that, whatever takes long, where its old volume can never be bound again.
func TestNotBackToAVolumeThatIsBeingDeleted(t *testing.T) {
	for name, fail := range map[string]func(*life){
		"the driver repeats an error": func(l *life) {
			l.words = "code = Internal desc = busy"
			l.pass(6 * time.Minute)
		},
		"it takes too long": func(l *life) { l.pass(70 * time.Minute) },
		"undo":              func(l *life) { l.undo("pv-1") },
		"the API server refuses the claim": func(l *life) {
			l.claim.DeletionTimestamp = l.deleted()
			l.turn()
			l.refuses = func(*corev1.PersistentVolumeClaim) string { return "exceeded quota" }
			l.pass(5 * time.Minute)
			l.refuses = nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			l := newLife(t, patient)
			l.wants("fast")
			l.until("CreateClaim from")
			l.stuck = true
			l.turn()
			l.stored["pv-1"].DeletionTimestamp = l.deleted() // kubectl delete pv: our finalizer keeps it
			fail(l)
			l.stuck, l.words = false, ""
			l.settle()
			g.Expect(l.step.Reason).NotTo(Equal(ReasonVolumeLost), l.step.Message)
			g.Expect(l.claim).NotTo(BeNil())
			g.Expect(l.missing()).To(BeEmpty())
		})
	}
}
