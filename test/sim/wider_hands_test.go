// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// handRollouts are rollouts in which people make and delete objects by hand.
var handRollouts = []rollout{
	{"a claim that a user made before", 5, withClaimsOnly, together(claimByHand(3, bare), scaleTo(5))},
	{"a claim that a user makes just before", 5, withClaimsOnly, together(justBefore("PersistentVolumeClaim", labeled), scaleTo(5))},
	{"a claim of another controller", 5, withClaimsOnly, together(claimByHand(3, controlled), scaleTo(5))},
	{"a pod that a user made, which is taken over", 7, func(*settings) {}, together(podByHand(3, labeled), scaleTo(5))},
	{"a pod that a user makes just before, which is taken over", 7, func(*settings) {}, together(justBefore("Pod", labeled), scaleTo(5))},
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
			r.crashEverywhere(NewWithT(t), only(killedAfter, unanswered))
		})
	}
}

// A pod is in the way that is not the set's: the status names it, and the manager does
// not touch it.
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

// A user makes a revision with the labels of the set that the manager cannot read: the
// status names it.
func TestNamesTheRevisionThatTheManagerCannotRead(t *testing.T) {
	for _, shape := range []func(*settings){func(*settings) {}, asClones(func(*settings) {})} {
		g := NewWithT(t)
		s := reference()
		shape(&s)
		w, err := newScenario(s)
		g.Expect(err).NotTo(HaveOccurred())
		w.makeByHand(revisionByHand(setName+"-mine", runtime.RawExtension{}, 9), labeled)
		to("b")(w)
		w.settleOr(inTheWayFor)
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		g.Expect(isNamedIn(w.set(), setName+"-mine")).To(BeTrue(), conditionWords(w.set()))
		goneByHand("ControllerRevision", setName+"-mine")(w)
		w.rest()
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	}
}

// A pod that the set may adopt is deleted, and another one made of its name, which is not
// the set's: the caches show that later.
func TestTakesOverNoOtherOfTheName(t *testing.T) {
	g := NewWithT(t)
	w, err := newScenario(reference())
	g.Expect(err).NotTo(HaveOccurred())
	podByHand(3, labeled)(w)
	w.manager.cache.deliver("Pod", w.manager.cache.behind("Pod"))
	goneByHand("Pod", setName+"-3")(w)
	podByHand(3, bare)(w)
	unseen("Pod", 5)(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// The revision that is to be made has the name of one that is not the set's, with the
// same content: the set has one of its own in the end.
func TestHasARevisionOfItsOwn(t *testing.T) {
	for _, how := range []making{bare, controlled} {
		for _, shape := range []func(*settings){func(*settings) {}, asClones(func(*settings) {})} {
			g := NewWithT(t)
			s := reference()
			shape(&s)
			w, err := newScenario(s)
			g.Expect(err).NotTo(HaveOccurred())
			together(justBefore("ControllerRevision", how), to("b"))(w)
			w.rest()
			g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		}
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

// inItsPlace is the creation of the claim that is recreated, and onTrial that of the claim
// to which its first snapshot is restored.
const (
	inItsPlace = "create PersistentVolumeClaim data-" + setName + "-0"
	onTrial    = "create PersistentVolumeClaim data-" + setName + "-0-6021d7a279-trial"
)

// recreatingByHand recreates a claim, and lets a user do something right before a write
// of the manager.
func recreatingByHand(g Gomega, change func(*settings), before string, meanwhile func(*World)) *World {
	s := reference()
	recreatingFew(1, change)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	for range 20 {
		w.step()
	}
	w.fate = func(written write) fate {
		if written.words == before {
			w.fate = nil
			meanwhile(w)
		}
		return succeeds
	}
	claimsOfClass("fast")(w)
	w.rest()
	g.Expect(w.fate).To(BeNil(), "%s was not written\n%s", before, w.story)
	return w
}

// A user makes a claim of the name of one that is recreated, between its deletion and
// its creation: no pod may run on that, it lacks all that was written.
func TestClaimMadeWhileItIsRecreated(t *testing.T) {
	g := NewWithT(t)
	w := recreatingByHand(g, nil, inItsPlace, func(w *World) {
		w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(20*time.Second)
		w.makeByHand(w.claimByHand("data-"+setName+"-0"), bare)
	})
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}

// A set is deleted with its claims, and made again, while a claim of it was being
// recreated: what is held of that is the set's of before, and the new one starts empty.
func TestHeldVolumeOfAnEarlierSet(t *testing.T) {
	for _, before := range []string{onTrial, inItsPlace} {
		g := NewWithT(t)
		w := recreatingByHand(g, func(s *settings) { s.wider.again.claimsGo = true }, before, func(w *World) {
			w.manager.client.dead, w.manager.startsAt = true, w.clock.Now().Add(20*time.Second)
			w.remake(inBackground, 2*time.Second)
		})
		g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
		claim, _ := get[*corev1.PersistentVolumeClaim](w.server, "data-"+setName+"-0")
		g.Expect(claim.Spec.DataSource).To(BeNil(), "it has the data of the set before\n%s", w.story)
	}
}

// Admission gives claims another storage class than their template says: a claim that is
// recreated gets it, too, and is not recreated over and over.
func TestRecreatedWhereAdmissionChangesTheClass(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	recreatingFew(1, nil)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.server.admission.rewrites = rewrites{class: "whole"}
	claimsOfClass("fast")(w)
	w.settleOr(10 * time.Minute)
	made := slices.DeleteFunc(slices.Clone(w.log), func(words string) bool { return !strings.HasPrefix(words, "create PersistentVolumeClaim") })
	g.Expect(len(made)).To(BeNumerically("<", 6), w.story.String())
}

// A claim of another controller is not what the template says: the status says that it
// does not follow.
func TestNamesTheClaimOfAnotherController(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	withClaims("standard", nil)(&s)
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.makeClaimByHand(setName+"-3", controlled)
	scaleTo(4)(w)
	claimsOfSize("2Gi", "a")(w)
	w.rest()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
}
