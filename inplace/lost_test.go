// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/test/builders"
)

func onNode1(pod *builders.PodBuilder) *builders.PodBuilder {
	return pod.With(func(p *corev1.Pod) { p.Spec.NodeName = "node-1" })
}

// leaving is a pod whose deletion was asked for after 10 s, with a grace period
// of 30 s: it is lost after 100 s.
func leaving(pod *builders.PodBuilder) *builders.PodBuilder {
	return onNode1(pod).Deleted(after(40)).With(func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](30) })
}

// inNoHurry is a pod that is being deleted, and not lost for long.
func inNoHurry(pod *builders.PodBuilder) *builders.PodBuilder {
	return pod.Deleted(after(90))
}

func TestAPodIsLostAMinuteAfterItsGracePeriod(t *testing.T) {
	g := NewWithT(t)
	w := workload(t, 1, leaving(inService("p0")))

	g.Expect(IsLost(w.Pods[0].Pod, after(99))).To(BeFalse())
	plan := MakePlan(w, after(99))
	g.Expect(blockers(plan)).To(Equal([]string{"p0 Recreating Terminating"}))
	g.Expect(plan.Blockers[0].Since).To(BeTemporally("==", after(10)), "since its deletion was requested")
	g.Expect(plan.Recheck).To(BeTemporally("==", after(100)))

	g.Expect(IsLost(w.Pods[0].Pod, after(100))).To(BeTrue())
	plan = MakePlan(w, after(100))
	g.Expect(blockers(plan)).To(Equal([]string{"p0 Stuck TerminationOverdue"}))
	g.Expect(plan.Blockers[0].Since).To(BeTemporally("==", after(10)))
	g.Expect(plan.Blockers[0].Message).To(Equal("terminating since " + after(10).Format(time.RFC3339) + " on node node-1: " +
		"force-delete it when the node is known to be gone: kubectl delete pod p0 -n default --force --grace-period=0"))
	g.Expect(plan.Recheck).To(BeZero(), "time alone changes nothing any more")

	g.Expect(IsLost(inService("p0").Build(), after(1000))).To(BeFalse())
}

func TestALostPodThatWaitsForFinalizersIsNotToBeForced(t *testing.T) {
	g := NewWithT(t)
	pod := leaving(inService("p0")).With(func(p *corev1.Pod) { p.Finalizers = []string{"example.io/a", "example.io/b"} })
	g.Expect(Terminate(pod.Build(), planned).Message).To(ContainSubstring("--force"), "its containers may still run")
	pod.With(func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = ptr.To[int64](0) })
	g.Expect(Terminate(pod.Build(), planned).Message).To(HaveSuffix("waits for its finalizers: example.io/a, example.io/b"))
}

func TestMakePlanBesideALostPod(t *testing.T) {
	type pods = []*builders.PodBuilder
	for name, tc := range map[string]struct {
		pods     pods
		limit    int
		moves    []string
		blockers []string
	}{
		"it counts as unavailable": {
			pods: pods{leaving(inService("p2")), inService("p1"), inService("p0")}, limit: 1,
			blockers: []string{"p2 Stuck TerminationOverdue", "p1 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"at its revision, too": {
			pods: pods{leaving(updated("p1")), inService("p0")}, limit: 1,
			blockers: []string{"p1 Stuck TerminationOverdue", "p0 Waiting MaxUnavailable"},
		},
		"the others share what is left of the budget": {
			pods: pods{leaving(inService("p2")), inService("p1"), inService("p0")}, limit: 2,
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p2 Stuck TerminationOverdue", "p0 Waiting MaxUnavailable"},
		},
		"what is not ready anyway is updated": {
			pods: pods{leaving(inService("p2")), notReady(inService("p1")), inService("p0")}, limit: 1,
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p2 Stuck TerminationOverdue", "p0 Waiting MaxUnavailable"},
		},
		"but not while one is just going": {
			pods: pods{inNoHurry(inService("p2")), notReady(inService("p1")), inService("p0")}, limit: 1,
			blockers: []string{"p2 Recreating Terminating", "p1 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"what is broken is updated": {
			pods: pods{leaving(inService("p2")), crashing(inService("p1")), crashing(inService("p0"))}, limit: 1,
			moves: []string{"MarkNotReady p1", "MarkNotReady p0"}, blockers: []string{"p2 Stuck TerminationOverdue"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			plan := MakePlan(workload(t, tc.limit, tc.pods...), planned)
			g.Expect(moves(plan)).To(Equal(append([]string{}, tc.moves...)))
			g.Expect(blockers(plan)).To(Equal(append([]string{}, tc.blockers...)))
		})
	}
}

// Nodes that do not answer: what they run may serve, so nothing is deleted for
// that, and one of them costs no more than its place in the budget.
func TestMakePlanBesideASilentNode(t *testing.T) {
	type pods = []*builders.PodBuilder
	drained := func() *builders.PodBuilder {
		return onNode1(inService("p2").Condition("InPlaceUpdateReady", corev1.ConditionFalse, patched))
	}
	// The node controller sets the condition; nothing else of the pod moves.
	markedByNodeController := func(pod *builders.PodBuilder) *builders.PodBuilder {
		return onNode1(pod).Condition(corev1.ContainersReady, corev1.ConditionTrue, builders.Start).Ready(false, patched)
	}
	for name, tc := range map[string]struct {
		silent  *builders.PodBuilder
		message string
	}{
		"drained": {
			silent: drained(), message: "the kubelet on node node-1 has not reported the pod not ready yet",
		},
		"changed": {
			silent: onNode1(marked(inFlight("p2"))), message: "container main: the kubelet on node node-1 has not reported that it saw the change",
		},
		"at its revision": {
			silent:  markedByNodeController(updated("p2")),
			message: "its containers and gates are ready; the kubelet on node node-1 has not reported the pod ready",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			others := pods{tc.silent, crashing(inService("p1")), inService("p0")}
			plan := MakePlan(workload(t, 1, others...), after(10_000))
			g.Expect(moves(plan)).To(Equal([]string{"MarkNotReady p1"}), "broken ones go in any case")
			g.Expect(plan.Blockers[0].Pod.Name).To(Equal("p2"))
			g.Expect(plan.Blockers[0].Message).To(Equal(tc.message))

			plan = MakePlan(workload(t, 2, tc.silent, inService("p1"), inService("p0")), after(10_000))
			g.Expect(moves(plan)).To(Equal([]string{"MarkNotReady p1"}), "one place of the budget is left")
			plan = MakePlan(workload(t, 2, tc.silent, notReady(inService("p1")), inService("p0")), after(10_000))
			g.Expect(moves(plan)).To(Equal([]string{"MarkNotReady p1"}), "one more may be in work")
		})
	}
}

func TestMakePlanNamesCondemnedPodsThatAreLost(t *testing.T) {
	g := NewWithT(t)
	w := workload(t, 1, inService("p0"))
	w.Condemned = []*corev1.Pod{inService("p1").Build(), leaving(inService("p2")).Build(), inNoHurry(inService("p3")).Build()}
	plan := MakePlan(w, planned)
	g.Expect(moves(plan)).To(Equal([]string{"MarkNotReady p0"}), "they count for nothing")
	g.Expect(blockers(plan)).To(Equal([]string{"p2 Stuck TerminationOverdue"}))
	g.Expect(plan.Recheck).To(BeTemporally("==", after(150)), "p3 may be lost then")
	g.Expect(plan.Pods).To(HaveLen(1))
}

func TestMakePlanSaysThatATerminatingPodHoldsUpTheOrder(t *testing.T) {
	for name, pod := range map[string]*builders.PodBuilder{"going": inNoHurry(inService("p1")), "lost": leaving(inService("p1"))} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, 1, pod, inService("p0"))
			w.Ordered = true
			plan := MakePlan(w, planned)
			g.Expect(plan.Blockers[0].Message).To(ContainSubstring("podManagementPolicy OrderedReady"))
			g.Expect(plan.Blockers[1].Message).NotTo(ContainSubstring("OrderedReady"))
			w.Ordered = false
			g.Expect(MakePlan(w, planned).Blockers[0].Message).NotTo(ContainSubstring("OrderedReady"))
		})
	}
}
