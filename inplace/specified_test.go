// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

func asked(pod *builders.PodBuilder) *builders.PodBuilder {
	return pod.Label(appsv1beta1.SpecifiedDeleteKey, "")
}

func TestNextOfAPodThatIsAskedToBeDeleted(t *testing.T) {
	recreate := Step{
		Action: Recreate, State: Recreating, Reason: ReasonSpecifiedDelete,
		Message: "the label apps.kruise.io/specified-delete asks for it",
	}
	for name, pod := range map[string]*builders.PodBuilder{
		"at its revision":           asked(updated("p0")),
		"before its update":         asked(inService("p0")),
		"with any value":            updated("p0").Label(appsv1beta1.SpecifiedDeleteKey, "false"),
		"in the middle of a change": asked(inFlight("p0")),
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, 1, pod)
			for _, policy := range []appsv1beta1.PodUpdateStrategyType{inPlaceIfPossible, inPlaceOnly, reCreate} {
				w.Target.Policy = policy
				g.Expect(Next(w.Pods[0], w.Target, planned)).To(Equal(recreate), string(policy))
			}
			w.Pods[0].From = nil
			g.Expect(Next(w.Pods[0], w.Target, planned)).To(Equal(recreate), "from a revision that is lost")
		})
	}
}

func TestAPodThatIsBeingDeletedIsNotAskedAgain(t *testing.T) {
	g := NewWithT(t)
	w := workload(t, 1, asked(updated("p0")).Deleted(after(90)))
	g.Expect(Next(w.Pods[0], w.Target, planned)).To(HaveField("Reason", ReasonTerminating))
}

// A pod that is made from such a template has the label, and so would the next.
func TestALabelOfTheTemplateIsNoRequest(t *testing.T) {
	const labeled = `{"metadata":{"labels":{"apps.kruise.io/specified-delete":"true"}},"spec":{"containers":[{"name":"main","image":"nginx:latest"}]}}`
	g := NewWithT(t)
	w := workload(t, 1, asked(updated("p1")), asked(inService("p0")))
	w.Target.Template = parse(t, labeled)
	w.Pods[0].From = &Revision{Name: "b", Template: w.Target.Template}

	plan := MakePlan(w, planned)
	g.Expect(moves(plan)).To(Equal([]string{"Recreate p0"}), "p1 has it from its template, p0 from a user")
	g.Expect(plan.Pods[0].Step.State).To(Equal(Settled))

	w.Target.Revision = *testRevisions(t)["a"]
	w.Pods, w.Replicas = w.Pods[:1], 1
	g.Expect(moves(MakePlan(w, planned))).To(Equal([]string{"MarkNotReady p1"}), "its template is updated as any other")
}

func TestMakePlanOfPodsThatAreAskedToBeDeleted(t *testing.T) {
	type pods = []*builders.PodBuilder
	for name, tc := range map[string]struct {
		pods     pods
		limit    int
		with     func(w *Workload)
		moves    []string
		blockers []string
	}{
		"within the budget": {
			pods: pods{asked(updated("p2")), asked(updated("p1")), updated("p0")}, limit: 1,
			moves: []string{"Recreate p2"}, blockers: []string{"p1 Waiting MaxUnavailable"},
		},
		"not while another is unavailable": {
			pods: pods{asked(updated("p1")), notReady(updated("p0"))}, limit: 1,
			blockers: []string{"p0 Verifying PodNotReady", "p1 Waiting MaxUnavailable"},
		},
		"before the others of an update": {
			pods: pods{inService("p2"), inService("p1"), asked(inService("p0"))}, limit: 1,
			moves: []string{"Recreate p0"}, blockers: []string{"p2 Waiting MaxUnavailable", "p1 Waiting MaxUnavailable"},
		},
		"not before those that are out of service": {
			pods: pods{asked(inService("p1")), marked(inService("p0"))}, limit: 1,
			moves: []string{"Patch p0"}, blockers: []string{"p1 Waiting MaxUnavailable"},
		},
		"broken ones whatever the budget says": {
			pods: pods{crashing(asked(updated("p2"))), crashing(asked(updated("p1"))), notReady(updated("p0"))}, limit: 1,
			moves: []string{"Recreate p2", "Recreate p1"}, blockers: []string{"p0 Verifying PodNotReady"},
		},
		"whatever the partition says": {
			pods: pods{asked(inService("p0"))}, limit: 1, with: func(w *Workload) { w.Pods[0].Held = true },
			moves: []string{"Recreate p0"},
		},
		"also when the update is stopped": {
			pods: pods{asked(inService("p2")), inService("p1"), asked(updated("p0"))}, limit: 1, with: func(w *Workload) { w.Stopped = true },
			moves: []string{"Recreate p2"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a new one goes into service until its turn": {
			pods: pods{asked(notReady(updated("p1").With(withoutCondition(appsv1beta1.InPlaceUpdateReady)))), notReady(updated("p0"))}, limit: 1,
			moves: []string{"MarkReady p1"}, blockers: []string{"p0 Verifying PodNotReady"},
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
		})
	}
}
