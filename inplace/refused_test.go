// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

func denied() *Refusal {
	return &Refusal{Reason: ReasonAdmissionDenied, Message: "denied by a policy", Until: after(35)}
}

// A pod whose change the server refuses, in every state; looked at 20 s after
// the start.
func TestNextOfAPodWhoseChangeIsRefused(t *testing.T) {
	stuck := Step{State: Stuck, Reason: ReasonAdmissionDenied, Message: "denied by a policy", Until: after(35)}
	back := Step{Action: MarkReady, State: Verifying, Message: "every container runs what it should"}
	for name, tc := range map[string]struct {
		pod    *builders.PodBuilder
		to     string
		policy appsv1beta1.PodUpdateStrategyType
		want   Step
	}{
		"in service, it stays there":                  {pod: settledPod(), to: "b", want: stuck},
		"so it does under InPlaceOnly":                {pod: settledPod(), to: "b", policy: inPlaceOnly, want: stuck},
		"without the gate":                            {pod: builders.Pod("sample-0", "a", alpineImage), to: "b", want: stuck},
		"labels only":                                 {pod: settledPod(), to: "label", want: stuck},
		"drained, it goes back":                       {pod: drainedPod(), to: "b", want: back},
		"marked and not read back, it goes back":      {pod: drainedPod().Ready(true, after(0)), to: "b", want: back},
		"not ready":                                   {pod: settledPod().Ready(false, after(5)), to: "b", want: stuck},
		"broken":                                      {pod: crashing(settledPod()), to: "b", want: stuck},
		"changed to b, and what it needs is a":        {pod: changedPod(failedPull()), to: "a", want: stuck},
		"changed to b and done, it goes into service": {pod: changedPod(newContainer()), to: "a", want: Step{Action: MarkReady, State: Verifying, Since: patched, Message: back.Message}},
		"at the target it is none of its business":    {pod: builders.Pod("sample-0", "b", latestImage), to: "b", want: Step{State: Settled}},
		"what is recreated is not changed in place": {
			pod: settledPod(), to: "env",
			want: Step{Action: Recreate, State: Recreating, Reason: ReasonFieldImmutable, Message: "spec.containers[main].env was added, and the API server lets no live pod change it"},
		},
		"under ReCreate": {
			pod: settledPod(), to: "b", policy: reCreate,
			want: Step{Action: Recreate, State: Recreating, Reason: ReasonPolicyReCreate, Message: "podUpdatePolicy is ReCreate"},
		},
		"being deleted": {
			pod: settledPod().Deleted(after(10)), to: "b",
			want: Step{State: Recreating, Reason: ReasonTerminating, Message: "the pod is being deleted", Since: after(10), Until: after(70)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			revisions, pod := testRevisions(t), tc.pod.Build()
			target := Target{Revision: *revisions[tc.to], Policy: tc.policy}
			if tc.policy == "" {
				target.Policy = inPlaceIfPossible
			}
			step := Next(PodFacts{Pod: pod, From: revisions[RevisionOf(pod)], Refused: denied()}, target, after(20))
			NewWithT(t).Expect(step).To(BeComparableTo(tc.want))
		})
	}
}

// A pod can wait for two moments; the first of them is when to look again.
func TestNextOfARefusedPodLooksAgainInTime(t *testing.T) {
	g := NewWithT(t)
	revisions := testRevisions(t)
	settling := changedPod(oldContainer()).Record(record(entry(""))).Build()
	for until, want := range map[time.Time]time.Time{after(21): after(21), after(3600): Observe(settling, after(20)).Recheck} {
		refused := &Refusal{Reason: ReasonAdmissionDenied, Message: "denied", Until: until}
		step := Next(PodFacts{Pod: settling, From: revisions["b"], Refused: refused}, Target{Revision: *revisions["a"], Policy: inPlaceIfPossible}, after(20))
		g.Expect(step.State).To(Equal(Stuck))
		g.Expect(step.Until).To(And(Not(BeZero()), BeTemporally("==", want)))
	}
}

func TestMakePlanWithRefusedPods(t *testing.T) {
	type pods = []*builders.PodBuilder
	for name, tc := range map[string]struct {
		pods     pods
		limit    int
		refused  []int
		with     func(w *Workload)
		moves    []string
		blockers []string
	}{
		"nothing is drained": {
			pods: pods{inService("p1"), inService("p0")}, limit: 2, refused: []int{0, 1},
			blockers: []string{"p1 Stuck AdmissionDenied", "p0 Stuck AdmissionDenied"},
		},
		"the budget is for the others": {
			pods: pods{inService("p2"), inService("p1"), inService("p0")}, limit: 1, refused: []int{0},
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p2 Stuck AdmissionDenied", "p0 Waiting MaxUnavailable"},
		},
		"what was drained goes back, others wait until it serves": {
			pods: pods{marked(inService("p1")), inService("p0")}, limit: 1, refused: []int{0},
			moves: []string{"MarkReady p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a broken one waits, and another broken one goes": {
			pods: pods{crashing(inService("p1")), crashing(inService("p0"))}, limit: 1, refused: []int{0},
			moves: []string{"MarkNotReady p0"}, blockers: []string{"p1 Stuck AdmissionDenied"},
		},
		"stopped, nothing is refused": {
			pods: pods{inService("p1"), marked(inService("p0"))}, limit: 1, refused: []int{0, 1},
			with:  func(w *Workload) { w.Stopped = true },
			moves: []string{"MarkReady p0"},
		},
		"held, nothing is refused": {
			pods: pods{inService("p0")}, limit: 1, refused: []int{0},
			with: func(w *Workload) { w.Pods[0].Held = true },
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, tc.limit, tc.pods...)
			for _, i := range tc.refused {
				w.Pods[i].Refused = &Refusal{Reason: ReasonAdmissionDenied, Message: "denied", Until: after(115)}
			}
			if tc.with != nil {
				tc.with(&w)
			}
			plan := MakePlan(w, planned)
			g.Expect(moves(plan)).To(Equal(append([]string{}, tc.moves...)))
			g.Expect(blockers(plan)).To(Equal(append([]string{}, tc.blockers...)))
			if len(tc.blockers) > 0 && plan.Blockers[0].State == Stuck {
				g.Expect(plan.Recheck).To(Equal(after(115)), "the server is asked again")
			}
		})
	}
}

// leadsToPatch tells by the state of a step whether it leads to a patch.
func leadsToPatch(step Step) bool {
	switch step.State {
	case Draining, Grace, Patching:
		return true
	case Resizing:
		return !step.Change.isEmpty()
	case HookHeld:
		return step.Reason == ReasonInPlaceUpdateHook
	case Settled, Waiting, UpdatingClaims, Restarting, Verifying, Recreating, Stuck:
		return false
	default:
		return false
	}
}

func TestLeadsToPatch(t *testing.T) {
	g := NewWithT(t)
	revisions := testRevisions(t)
	leads := func(pod *builders.PodBuilder, to string, policy appsv1beta1.PodUpdateStrategyType) bool {
		p := pod.Build()
		return Next(PodFacts{Pod: p, From: revisions[RevisionOf(p)]}, Target{Revision: *revisions[to], Policy: policy, GracePeriod: time.Minute}, after(20)).LeadsToPatch
	}
	for to, want := range map[string]bool{"b": true, "label": true, "twin": true, "env": false, "a": false} {
		g.Expect(leads(settledPod(), to, inPlaceIfPossible)).To(Equal(want), to)
	}
	g.Expect(leads(drainedPod(), "b", inPlaceIfPossible)).To(BeTrue(), "grace")
	g.Expect(leads(settledPod().Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(10)), "b", inPlaceIfPossible)).To(BeTrue(), "draining")
	g.Expect(leads(settledPod(), "b", reCreate)).To(BeFalse())
}
