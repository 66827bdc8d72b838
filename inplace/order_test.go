// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/volumes"
)

// primaryLast is the order that docs/databases.md recommends.
var primaryLast = Priorities(byWeights(weight(100, having("role", "replica")), weight(50, where("role", "NotIn", "primary", "replica"))))

func replica(pod *builders.PodBuilder) *builders.PodBuilder { return pod.Label("role", "replica") }
func primary(pod *builders.PodBuilder) *builders.PodBuilder { return pod.Label("role", "primary") }

// justNotReady is a pod that has not been ready for some seconds.
func justNotReady(name string) *builders.PodBuilder {
	return inService(name).Ready(false, planned.Add(-5*time.Second))
}

// withRoles gives the pods their priorities, as the controllers do.
func withRoles(w Workload) Workload {
	for i := range w.Pods {
		w.Pods[i].Priority = primaryLast(labels.Set(w.Pods[i].Pod.Labels))
	}
	return w
}

// The pods are given in the order of their roles, as the controllers give them.
func TestRolesAreWaitedFor(t *testing.T) {
	type pods = []*builders.PodBuilder
	type claims = []volumes.Claims
	r1, r2, p := replica(inService("r1")), replica(inService("r2")), primary(inService("p"))
	for name, tc := range map[string]struct {
		pods     pods
		claims   claims
		limit    int // maxUnavailable
		at       int // maxConcurrent of claims
		with     func(w *Workload)
		moves    []string
		blockers []string
	}{
		"a primary whose claim is large enough, while those of the replicas grow": {
			pods: pods{r1, r2, p}, claims: claims{claimUnderWay, claimChanges, claimSettled}, limit: 1, at: 1,
			blockers: []string{"r1 UpdatingClaims ClaimExpanding", "r2 Waiting MaxConcurrentClaims", "p Waiting UpdateOrder"},
		},
		// The claim of r1 grew when it was a replica. It has become the primary since.
		"a switchover between the claim of a pod and its image": {
			pods: pods{r2, p}, claims: claims{claimChanges, claimSettled}, limit: 1, at: 1,
			moves:    []string{"ChangeClaims r2"},
			blockers: []string{"r2 UpdatingClaims ClaimChanging", "p Waiting UpdateOrder"},
		},
		"a switchover while the claim of a pod grows": {
			pods: pods{r2, p}, claims: claims{claimChanges, claimUnderWay}, limit: 1, at: 1,
			blockers: []string{"p UpdatingClaims ClaimExpanding", "r2 Waiting MaxConcurrentClaims"},
		},
		"a switchover after the trial of a claim that is to be recreated": {
			pods: pods{r2, p}, claims: claims{claimChanges, claimDetaches}, limit: 1, at: 2,
			moves:    []string{"ChangeClaims r2"},
			blockers: []string{"r2 UpdatingClaims ClaimChanging", "p Waiting UpdateOrder"},
		},
		// The replica waits for the budget, and that for the primary.
		"a pod that was drained before it became the primary, and then needs a larger claim": {
			pods: pods{r1, primary(marked(builders.Pod("p", "a", alpineImage).Record(record(entry(latestImage))).Generation(2, 1)))}, limit: 1, at: 1,
			claims:   claims{claimChanges, claimChanges},
			moves:    []string{"ChangeClaims p"},
			blockers: []string{"p UpdatingClaims ClaimChanging", "r1 Waiting MaxConcurrentClaims"},
		},
		"claims that all may change at once begin in this order": {
			pods: pods{r1, r2, p}, claims: claims{claimUnderWay, claimChanges, claimChanges}, limit: 1, at: 3,
			moves:    []string{"ChangeClaims r2", "ChangeClaims p"},
			blockers: []string{"r1 UpdatingClaims ClaimExpanding", "r2 UpdatingClaims ClaimChanging", "p UpdatingClaims ClaimChanging"},
		},
		"a claim that cannot follow is not waited for": {
			pods: pods{updated("r1"), p}, claims: claims{claimBlocked, claimChanges}, limit: 1, at: 1,
			moves:    []string{"ChangeClaims p"},
			blockers: []string{"r1 Stuck ExpansionNotAllowed", "p UpdatingClaims ClaimChanging"},
		},
		"a primary that is not ready for a moment": {
			pods: pods{r1, r2, primary(justNotReady("p"))}, limit: 2,
			moves:    []string{"MarkNotReady r1"},
			blockers: []string{"p Waiting UpdateOrder", "r2 Waiting MaxUnavailable"},
		},
		"a primary that is not ready for a moment takes the budget": {
			pods: pods{r1, r2, primary(justNotReady("p"))}, limit: 1,
			blockers: []string{"p Waiting UpdateOrder", "r1 Waiting MaxUnavailable", "r2 Waiting MaxUnavailable"},
		},
		"a primary that has not been ready for a minute": {
			pods: pods{r1, r2, primary(inService("p").Ready(false, planned.Add(-time.Minute)))}, limit: 1,
			moves:    []string{"MarkNotReady p"},
			blockers: []string{"r1 Waiting MaxUnavailable", "r2 Waiting MaxUnavailable"},
		},
		"a primary that cannot become ready": {
			pods: pods{r1, primary(crashing(inService("p")))}, limit: 1,
			moves: []string{"MarkNotReady p"}, blockers: []string{"r1 Waiting MaxUnavailable"},
		},
		"a replica that is not ready": {
			pods: pods{replica(notReady(inService("r1"))), p}, limit: 1,
			moves: []string{"MarkNotReady r1"}, blockers: []string{"p Waiting MaxUnavailable"},
		},
		"a pod that was drained before it became the primary": {
			pods: pods{r1, primary(marked(inService("p")))}, limit: 1,
			moves: []string{"Patch p"}, blockers: []string{"r1 Waiting MaxUnavailable"},
		},
		"a pod without a role after the replicas, before the primary": {
			pods: pods{inService("n"), p}, limit: 1,
			moves: []string{"MarkNotReady n"}, blockers: []string{"p Waiting MaxUnavailable"},
		},
		"as many at a time as maxUnavailable has, the primary with the last": {
			pods: pods{r1, r2, p}, limit: 3, moves: []string{"MarkNotReady r1", "MarkNotReady r2", "MarkNotReady p"},
		},
		"a replica that the API server refuses is not waited for": {
			pods: pods{r1, p}, limit: 1,
			with: func(w *Workload) {
				w.Pods[0].Refused = &Refusal{Reason: ReasonAdmissionDenied, Message: "no", Denied: true}
			},
			moves:    []string{"MarkNotReady p"},
			blockers: []string{"r1 Stuck AdmissionDenied"},
		},
		"a replica that the partition keeps is not waited for": {
			pods: pods{r1, p}, limit: 1, with: func(w *Workload) { w.Pods[0].Held = true }, moves: []string{"MarkNotReady p"},
		},
		"a replica that is being deleted is not waited for": {
			pods: pods{replica(inService("r1")).Deleted(planned), p}, limit: 2,
			moves: []string{"MarkNotReady p"}, blockers: []string{"r1 Recreating Terminating"},
		},
		"a user who asks for the deletion of the primary": {
			pods: pods{r1, primary(inService("p")).Label(appsv1beta1.SpecifiedDeleteKey, "true")}, limit: 1,
			moves: []string{"Recreate p"}, blockers: []string{"r1 Waiting MaxUnavailable"},
		},
		"pods that are recreated go in this order": {
			pods: pods{r1, p}, limit: 1, with: func(w *Workload) { w.Target.Policy = reCreate },
			moves: []string{"Recreate r1"}, blockers: []string{"p Waiting MaxUnavailable"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := withRoles(workload(t, tc.limit, tc.pods...))
			w.MaxConcurrentClaims = tc.at
			for i := range tc.claims {
				w.Pods[i].Claims = tc.claims[i]
			}
			if tc.with != nil {
				tc.with(&w)
			}
			plan := MakePlan(w, planned)
			g.Expect(moves(plan)).To(Equal(append([]string{}, tc.moves...)))
			g.Expect(blockers(plan)).To(Equal(append([]string{}, tc.blockers...)))
		})
	}
}

// A primary that is not ready is looked at again when its minute is over, and its gate
// is opened meanwhile if it was never open.
func TestAPrimaryThatIsNotReadyIsLookedAtAgain(t *testing.T) {
	g := NewWithT(t)
	w := withRoles(workload(t, 1, replica(inService("r")), primary(inService("p").Ready(false, planned.Add(-20*time.Second)))))
	plan := MakePlan(w, planned)
	g.Expect(plan.Moves).To(BeEmpty())
	g.Expect(plan.Recheck).To(Equal(planned.Add(40 * time.Second)))
	g.Expect(plan.Blockers[0].Message).To(Equal("pod r comes before it, by unorderedUpdate or priorityStrategy"))

	fresh := primary(builders.Pod("p", "a", alpineImage).Gated(corev1.ConditionFalse, planned).Ready(false, planned))
	plan = MakePlan(withRoles(workload(t, 1, replica(inService("r")), fresh)), planned)
	g.Expect(moves(plan)).NotTo(ContainElement("MarkNotReady r"))
}

// A pod whose role the watch has not shown yet is not drained: the API server refuses
// the write, since the pod has changed.
func TestADrainByRoleNamesTheVersionOfThePod(t *testing.T) {
	version := func(w Workload) string {
		plan := MakePlan(w, planned)
		NewWithT(t).Expect(moves(plan)).To(Equal([]string{"MarkNotReady r"}))
		body, err := ReadinessPatch(plan.Moves[0].Pod, plan.Moves[0].Step, metav1.NewTime(planned))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		patch := objectPatch{}
		NewWithT(t).Expect(json.Unmarshal(body, &patch)).To(Succeed())
		return patch.Metadata.ResourceVersion
	}
	pod := replica(inService("r")).With(func(p *corev1.Pod) { p.ResourceVersion = "7" })
	NewWithT(t).Expect(version(withRoles(workload(t, 1, pod)))).To(Equal("7"))
	NewWithT(t).Expect(version(workload(t, 1, pod))).To(BeEmpty(), "without roles, to mark a pod not ready is safe at any time")
}

// The primary runs the new image already, and needs its resources only. A replica needs
// both, and waits for another pod to be back.
func TestResizesGoByRole(t *testing.T) {
	g := NewWithT(t)
	named := func(name string, facts PodFacts, role string) PodFacts {
		facts.Pod.Name, facts.Pod.Labels["role"] = name, role
		return facts
	}
	r, p := named("r", at("small", nil), "replica"), named("p", at("smallV", nil), "primary")
	w := withRoles(Workload{Target: to("largeV"), Replicas: 3, MaxUnavailable: 1, MaxConcurrentResizes: 3, Pods: []PodFacts{r, p}})
	plan := MakePlan(w, after(10))
	g.Expect(plan.Moves).To(BeEmpty())
	g.Expect(blockers(plan)).To(Equal([]string{"r Waiting MaxUnavailable", "p Waiting UpdateOrder"}))

	w.Replicas = 2
	g.Expect(moves(MakePlan(w, after(10)))).To(Equal([]string{"Resize r", "Resize p"}), "the replica has begun")
}
