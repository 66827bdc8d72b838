// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// Pods of the plans, all with the gate; they are planned 100 s after the start.
var planned = after(100)

func inService(name string) *builders.PodBuilder {
	return builders.Pod(name, "a", alpineImage).Gated(corev1.ConditionTrue, builders.Start)
}

func updated(name string) *builders.PodBuilder {
	return builders.Pod(name, "b", latestImage).Gated(corev1.ConditionTrue, builders.Start)
}

func notReady(pod *builders.PodBuilder) *builders.PodBuilder {
	return pod.Ready(false, patched)
}

func crashing(pod *builders.PodBuilder) *builders.PodBuilder {
	return pod.Ready(false, patched).Status(waitingContainer("containerd://main-1", "CrashLoopBackOff"))
}

func marked(pod *builders.PodBuilder) *builders.PodBuilder {
	return pod.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, patched).Ready(false, patched)
}

// inFlight is a pod whose change to b the kubelet has not seen; its Ready
// condition is the one from before.
func inFlight(name string) *builders.PodBuilder {
	return updated(name).Record(record(entry(alpineImage))).Generation(2, 1)
}

// workload has target b, and as many replicas as pods.
func workload(t testing.TB, maxUnavailable int, pods ...*builders.PodBuilder) Workload {
	t.Helper()
	revisions := testRevisions(t)
	w := Workload{
		Target:   Target{Revision: *revisions["b"], Policy: inPlaceIfPossible},
		Replicas: len(pods), MaxUnavailable: maxUnavailable,
	}
	for _, b := range pods {
		pod := b.Build()
		w.Pods = append(w.Pods, PodFacts{Pod: pod, From: revisions[RevisionOf(pod)]})
	}
	return w
}

// moves returns the moves of a plan in short: "MarkNotReady p1".
func moves(plan Plan) []string {
	short := []string{}
	for _, m := range plan.Moves {
		short = append(short, fmt.Sprintf("%s %s", m.Step.Action, m.Pod.Name))
	}
	return short
}

// blockers returns the blockers of a plan in short: "p1 Waiting MaxUnavailable".
func blockers(plan Plan) []string {
	short := []string{}
	for _, b := range plan.Blockers {
		short = append(short, fmt.Sprintf("%s %s %s", b.Pod.Name, b.State, b.Reason))
	}
	return short
}

func TestMakePlan(t *testing.T) {
	type pods = []*builders.PodBuilder
	for name, tc := range map[string]struct {
		pods     pods
		limit    int
		with     func(w *Workload)
		moves    []string
		blockers []string
	}{
		"settled": {pods: pods{updated("p0"), updated("p1")}, limit: 1},
		"one at a time, in the order given": {
			pods: pods{inService("p1"), inService("p0")}, limit: 1,
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"as many as the budget has": {
			pods: pods{inService("p2"), inService("p1"), inService("p0")}, limit: 2,
			moves: []string{"MarkNotReady p2", "MarkNotReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"held pods stay, and need no blocker": {
			pods: pods{inService("p2"), inService("p1"), inService("p0")}, limit: 3,
			with:  func(w *Workload) { w.Pods[1].Held, w.Pods[2].Held = true, true },
			moves: []string{"MarkNotReady p2"},
		},
		"a held pod that was drained goes back into service": {
			pods: pods{marked(inService("p1")), inService("p0")}, limit: 1,
			with:  func(w *Workload) { w.Pods[0].Held = true },
			moves: []string{"MarkReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a held pod at the target is finished": {
			pods: pods{marked(updated("p1")), inService("p0")}, limit: 2,
			with:  func(w *Workload) { w.Pods[0].Held = true },
			moves: []string{"MarkReady p1", "MarkNotReady p0"},
		},
		"stopped: what was changed is finished, what was drained goes back": {
			pods: pods{marked(updated("p3")), marked(inService("p2")), inFlight("p1"), crashing(inService("p0")), inService("p4")}, limit: 5,
			with:     func(w *Workload) { w.Stopped = true },
			moves:    []string{"MarkReady p3", "MarkReady p2"},
			blockers: []string{"p1 Restarting NotObserved", "p0 Verifying CrashLoopBackOff"},
		},
		"broken pods first, and whatever the budget says": {
			pods: pods{inService("p3"), crashing(inService("p2")), notReady(updated("p1")), crashing(inService("p0"))}, limit: 1,
			moves:    []string{"MarkNotReady p2", "MarkNotReady p0"},
			blockers: []string{"p1 Verifying PodNotReady", "p3 Waiting MaxUnavailable"},
		},
		"a broken pod at the target is not updated again": {
			pods: pods{crashing(updated("p1")), inService("p0")}, limit: 1,
			blockers: []string{"p1 Verifying CrashLoopBackOff", "p0 Waiting MaxUnavailable"},
		},
		"unready ones before serving ones, at most maxUnavailable": {
			pods: pods{inService("p4"), notReady(inService("p3")), notReady(inService("p2")), notReady(inService("p1")), inService("p0")}, limit: 2,
			moves:    []string{"MarkNotReady p3", "MarkNotReady p2"},
			blockers: []string{"p1 Waiting MaxUnavailable", "p4 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"updated ones that are not available count (openkruise/kruise#898)": {
			pods: pods{notReady(updated("p2")), notReady(inService("p1")), inService("p0")}, limit: 1,
			blockers: []string{"p2 Verifying PodNotReady", "p1 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"none that serves is deleted while missing ones wait for others to start": {
			pods: pods{inService("p1"), inService("p0"), notReady(inService("p2"))}, limit: 4,
			with: func(w *Workload) {
				w.Replicas, w.Withheld, w.Target.Policy = 4, 1, appsv1beta1.RecreatePodUpdateStrategyType
			},
			moves: []string{"Recreate p2"}, blockers: []string{"p1 Waiting ScaleUpLimited", "p0 Waiting ScaleUpLimited"},
		},
		"but changed in place": {
			pods: pods{inService("p1"), inService("p0")}, limit: 2,
			with:  func(w *Workload) { w.Replicas, w.Withheld = 3, 1 },
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"what is not ready does not wait for what waits for it": {
			pods: pods{notReady(inService("p1")), inService("p0")}, limit: 1,
			with:  func(w *Workload) { w.Replicas, w.Withheld = 3, 1 },
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"missing pods count": {
			pods: pods{inService("p1"), inService("p0")}, limit: 1, with: func(w *Workload) { w.Replicas = 3 },
			blockers: []string{"p1 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"missing pods count for unready ones": {
			pods: pods{notReady(inService("p1")), inService("p0")}, limit: 1, with: func(w *Workload) { w.Replicas = 3 },
			blockers: []string{"p1 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"an available pod more than wanted gives room": {
			pods: pods{inService("p2"), inService("p1"), inService("p0")}, limit: 1, with: func(w *Workload) { w.Replicas = 2 },
			moves: []string{"MarkNotReady p2", "MarkNotReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"terminating pods count": {
			pods: pods{inService("p1").Deleted(after(50)), inService("p0")}, limit: 1,
			blockers: []string{"p1 Recreating Terminating", "p0 Waiting MaxUnavailable"},
		},
		"a Ready condition from before the change does not count": {
			pods: pods{inFlight("p1"), inService("p0")}, limit: 1,
			blockers: []string{"p1 Restarting NotObserved", "p0 Waiting MaxUnavailable"},
		},
		"a drained pod goes on": {
			pods: pods{marked(inService("p1")), inService("p0")}, limit: 1,
			moves: []string{"Patch p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a drained pod goes on with a smaller budget": {
			pods: pods{marked(inService("p1")), marked(inService("p0"))}, limit: 1, moves: []string{"Patch p1", "Patch p0"},
		},
		"labels only, at once and whatever the budget says": {
			pods: pods{inService("p2"), notReady(inService("p1")), inService("p0")}, limit: 1,
			with:  func(w *Workload) { w.Target.Revision = *testRevisions(t)["label"] },
			moves: []string{"Patch p1", "Patch p2", "Patch p0"},
		},
		"recreation within the budget": {
			pods: pods{inService("p1"), inService("p0")}, limit: 1, with: func(w *Workload) { w.Target.Policy = reCreate },
			moves: []string{"Recreate p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a new pod is put into service while it waits for its turn": {
			pods: pods{notReady(inService("p2").With(withoutCondition(appsv1beta1.InPlaceUpdateReady))), notReady(updated("p1"))}, limit: 1,
			moves: []string{"MarkReady p2"}, blockers: []string{"p1 Verifying PodNotReady"},
		},
		// The generation moved on after the update was done: a debug container, a resize.
		"a pod that serves keeps serving when the kubelet is behind its generation": {
			pods: pods{
				inService("p1").Status(newContainer()).Record(record(entry("nginx:before"))).Generation(3, 2), notReady(updated("p0")),
			}, limit: 1,
			blockers: []string{"p0 Verifying PodNotReady", "p1 Waiting MaxUnavailable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, tc.limit, tc.pods...)
			if tc.with != nil {
				tc.with(&w)
			}
			plan := MakePlan(w, planned)
			g.Expect(moves(plan)).To(Equal(append([]string{}, tc.moves...)))
			g.Expect(blockers(plan)).To(Equal(append([]string{}, tc.blockers...)))
			g.Expect(plan.Pods).To(HaveLen(len(w.Pods)))
			for i, p := range plan.Pods {
				g.Expect(p.Pod).To(BeIdenticalTo(w.Pods[i].Pod), "in the order of the facts")
			}
		})
	}
}

func TestMakePlanSaysWhereEachPodIs(t *testing.T) {
	g := NewWithT(t)
	plan := MakePlan(workload(t, 2, updated("p0"), inService("p1"), inFlight("p2"), marked(updated("p3")), notReady(updated("p4"))), planned)
	said := []string{}
	for _, p := range plan.Pods {
		said = append(said, fmt.Sprintf("%s updated %t ready %t available %t", p.Pod.Name, p.Updated, p.Ready, p.Available))
	}
	g.Expect(said).To(Equal([]string{
		"p0 updated true ready true available true",
		"p1 updated false ready true available true",
		"p2 updated false ready true available false",
		"p3 updated true ready false available false",
		"p4 updated true ready false available false",
	}))
}

func TestMakePlanSortsBlockersWorstFirst(t *testing.T) {
	g := NewWithT(t)
	w := workload(t, 1,
		inService("waits"), inService("drains").Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(99)),
		inService("goes").Deleted(after(50)), notReady(updated("verifies")).Ready(false, after(90)), inFlight("restarts").
			Record(appsv1beta1.InPlaceUpdateState{UpdateTimestamp: metav1.NewTime(after(80)), LastContainerStatuses: record(entry(alpineImage)).LastContainerStatuses}),
		inFlight("sticks"), inService("waits too"),
	)
	w.Target.Deadline = time.Minute
	plan := MakePlan(w, planned)
	g.Expect(plan.Moves).To(BeEmpty())
	g.Expect(blockers(plan)).To(Equal([]string{
		"sticks Stuck NotObserved", "restarts Restarting NotObserved", "verifies Verifying PodNotReady",
		"goes Recreating Terminating", "drains Draining StillReady", "waits Waiting MaxUnavailable", "waits too Waiting MaxUnavailable",
	}))
	since := []time.Time{patched, after(80), after(90), after(50), after(99), {}, {}}
	for i, b := range plan.Blockers {
		g.Expect(b.Since).To(BeTemporally("==", since[i]), b.Pod.Name)
		g.Expect(b.Message).NotTo(BeEmpty())
	}
	g.Expect(plan.Blockers[5].Message).To(Equal(
		"5 pods are unavailable, maxUnavailable is 1: drains, goes, verifies, restarts, sticks"))
}

// Two pods serve, and it is not certain yet what they run: time alone will tell,
// and nothing else happens until then.
func TestMakePlanComesBackWhenItIsCertainWhatAPodRuns(t *testing.T) {
	g := NewWithT(t)
	revisions := testRevisions(t)
	uncertain := func(name string) PodFacts {
		pod := builders.Pod(name, "b", latestImage).Generation(2, 2).
			Record(record(appsv1beta1.InPlaceUpdateContainerStatus{ContainerID: "containerd://main-1"})).Build()
		return PodFacts{Pod: pod, From: revisions["b"]}
	}
	plan := MakePlan(Workload{
		Target:   Target{Revision: *revisions["a"], Policy: inPlaceIfPossible},
		Replicas: 2, MaxUnavailable: 1, Pods: []PodFacts{uncertain("sample-1"), uncertain("sample-0")},
	}, after(20))
	g.Expect(plan.Moves).To(BeEmpty())
	g.Expect(plan.Recheck).To(BeTemporally("==", after(45)))
}

func TestMakePlanNamesFivePodsAtMost(t *testing.T) {
	g := NewWithT(t)
	pods := []*builders.PodBuilder{inService("p0")}
	for i := range 7 {
		pods = append(pods, notReady(updated(fmt.Sprintf("p%d", i+1))))
	}
	plan := MakePlan(workload(t, 1, pods...), planned)
	last := plan.Blockers[len(plan.Blockers)-1]
	g.Expect(last.Message).To(Equal("7 pods are unavailable, maxUnavailable is 1: p1, p2, p3, p4, p5, ..."))
}

func TestMakePlanSaysThatPodsAreMissing(t *testing.T) {
	g := NewWithT(t)
	w := workload(t, 2, inService("p0"))
	w.Replicas = 3
	plan := MakePlan(w, planned)
	g.Expect(plan.Blockers).To(HaveLen(1))
	g.Expect(plan.Blockers[0].Message).To(Equal("2 pods are unavailable, maxUnavailable is 2: 2 missing"))

	w = workload(t, 2, inService("p0"), notReady(updated("p1")))
	w.Replicas = 4
	plan = MakePlan(w, planned)
	g.Expect(plan.Blockers[len(plan.Blockers)-1].Message).To(Equal("3 pods are unavailable, maxUnavailable is 2: p1; 2 missing"))

	plan = MakePlan(workload(t, 0, inService("p0")), planned)
	g.Expect(plan.Blockers[0].Message).To(Equal("0 pods are unavailable, maxUnavailable is 0"))
}

func TestMakePlanNotes(t *testing.T) {
	g := NewWithT(t)
	plan := MakePlan(workload(t, 3, inService("p0"), marked(inService("p1")), crashing(marked(inService("p2"))), marked(updated("p3"))), planned)
	notes := []string{}
	for _, m := range plan.Moves {
		notes = append(notes, m.Note)
	}
	g.Expect(notes).To(Equal([]string{
		"MarkReady p3; every container runs what it should",
		"Patch p2; image of main: nginx:alpine to nginx:latest; broken: outside the budget",
		"Patch p1; image of main: nginx:alpine to nginx:latest; out of service already",
	}))
	g.Expect(blockers(plan)).To(Equal([]string{"p0 Waiting MaxUnavailable"}))
}
