// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// handRollouts are rollouts in which people make and delete objects by hand.
var handRollouts = []rollout{
	{"a claim that somebody made before", 5, withClaimsOnly, together(claimByHand(3, bare), scaleTo(5))},
	{"a claim that somebody makes just before", 5, withClaimsOnly, together(justBefore("PersistentVolumeClaim", labeled), scaleTo(5))},
	{"a claim of another controller", 5, withClaimsOnly, together(claimByHand(3, controlled), scaleTo(5))},
	{"a pod that somebody made, which is taken over", 7, func(*settings) {}, together(podByHand(3, labeled), scaleTo(5))},
	{"a pod that somebody makes just before, which is taken over", 7, func(*settings) {}, together(justBefore("Pod", labeled), scaleTo(5))},
	{"a pod in the way that goes", 4, func(*settings) {}, together(podByHand(3, bare), scaleTo(5), soon(25, goneByHand("Pod", setName+"-3")))},
	{"a pod of another controller in the way that goes", 4, func(*settings) {}, together(podByHand(3, controlled), scaleTo(5), soon(25, goneByHand("Pod", setName+"-3")))},
	{"a revision that has the name", 9, func(*settings) {}, together(justBefore("ControllerRevision", controlled), to("b"))},
	{"a revision without labels that has the name", 9, asClones(func(*settings) {}), together(justBefore("ControllerRevision", bare), to("b"))},
	{"a pod deleted with grace 0 while it restarts", 10, func(*settings) {}, together(to("b"), soon(4, goneByHand("Pod", setName+"-2")))},
}

func withClaimsOnly(s *settings) { s.claims = true }

func claimByHand(ordinal int, how making) func(*World) {
	return func(w *World) { w.makeClaimByHand(fmt.Sprintf("%s-%d", setName, ordinal), how) }
}

func podByHand(ordinal int, how making) func(*World) {
	return func(w *World) { w.makePodByHand(fmt.Sprintf("%s-%d", setName, ordinal), how) }
}

func justBefore(kind string, how making) func(*World) {
	return func(w *World) { w.goAhead(kind, how) }
}

func soon(seconds int, do func(*World)) func(*World) {
	return func(w *World) { w.in(seconds, do) }
}

// goneByHand deletes an object at once.
func goneByHand(kind, name string) func(*World) {
	return func(w *World) {
		w.say("user: deletes %s %s at once", kind, name)
		w.server.finish(objectKey{kind, name})
	}
}

// The manager dies around every write of rollouts in which people make and delete
// objects.
func TestCrashWhereHandsAre(t *testing.T) {
	t.Parallel()
	for _, r := range handRollouts {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			r.crashEverywhere(NewWithT(t), killedAfter, unanswered)
		})
	}
}

// A pod is in the way that is not the set's: the status names it, and nobody touches it.
func TestNamesThePodInTheWay(t *testing.T) {
	for _, how := range []making{bare, controlled} {
		t.Run(string(how), func(t *testing.T) {
			g := NewWithT(t)
			w, err := newScenario(reference())
			g.Expect(err).NotTo(HaveOccurred())
			podByHand(3, how)(w)
			scaleTo(5)(w)
			w.settleOr(inTheWayFor)
			before, _ := get[*corev1.Pod](w.server, setName+"-3")
			w.settleOr(inTheWayFor)
			after, _ := get[*corev1.Pod](w.server, setName+"-3")
			g.Expect(after).To(Equal(before), "it is left alone")
			w.clearTheWay()
			w.rest()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
			g.Expect(w.podsOfSet()).To(HaveLen(5))
		})
	}
}

// Somebody makes a revision with the labels of the set that nobody can read: the status
// names it.
func TestNamesTheRevisionThatNobodyCanRead(t *testing.T) {
	for _, shape := range []func(*settings){func(*settings) {}, asClones(func(*settings) {})} {
		g := NewWithT(t)
		s := reference()
		shape(&s)
		w, err := newScenario(s)
		g.Expect(err).NotTo(HaveOccurred())
		w.makeByHand(&appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: setName + "-mine"}, Revision: 9}, labeled)
		to("b")(w)
		w.settleOr(inTheWayFor)
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		g.Expect(isNamedIn(w.set(), setName+"-mine")).To(BeTrue(), conditionWords(w.set()))
		goneByHand("ControllerRevision", setName+"-mine")(w)
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	}
}

// together does one thing after the other, in one second.
func together(changes ...func(*World)) func(*World) {
	return func(w *World) {
		for _, change := range changes {
			change(w)
		}
	}
}
