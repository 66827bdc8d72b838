// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/volumes"
)

// Steps of claims, as package volumes makes them.

func claimStep(state volumes.State, reason string) volumes.Step {
	return volumes.Step{
		State: state, Reason: reason, Message: "claim data: " + reason,
		Claim: &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}},
	}
}

var (
	claimChanges  = volumes.Claims{claimStep(volumes.Changing, volumes.ReasonClaimChanging)}
	claimUnderWay = volumes.Claims{claimStep(volumes.UnderWay, volumes.ReasonClaimExpanding)}
	claimDetaches = volumes.Claims{claimStep(volumes.Detaching, volumes.ReasonVolumeInUse)}
	claimBlocked  = volumes.Claims{claimStep(volumes.Blocked, volumes.ReasonExpansionNotAllowed)}
	claimSettled  = volumes.Claims{claimStep(volumes.Settled, "")}
	claimRenewed  = claimThat(func(step *volumes.Step) { step.InFlight = true }, claimSettled)
	claimWaits    = volumes.Claims{claimStep(volumes.Waiting, volumes.ReasonClaimNotBound)}
)

func claimThat(change func(step *volumes.Step), steps volumes.Claims) volumes.Claims {
	step := steps[0]
	change(&step)
	return volumes.Claims{step}
}

func claimTriesAgain() volumes.Claims {
	return claimThat(func(step *volumes.Step) { step.Refused = "exceeded quota" }, claimChanges)
}

func claimKeepsPod() volumes.Claims {
	return claimThat(func(step *volumes.Step) { step.KeepsPod = true }, claimBlocked)
}

func TestMakePlanWithClaims(t *testing.T) {
	type pods = []*builders.PodBuilder
	type claims = []volumes.Claims
	for name, tc := range map[string]struct {
		pods     pods
		claims   claims
		limit    int // maxUnavailable
		at       int // maxConcurrent of claims
		with     func(w *Workload)
		moves    []string
		blockers []string
	}{
		"settled claims ask for nothing": {
			pods: pods{inService("p1"), updated("p0")}, claims: claims{claimSettled, claimSettled}, limit: 1, at: 1,
			moves: []string{"MarkNotReady p1"},
		},
		"the claim before its pod, in the order given": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimChanges, claimChanges}, limit: 1, at: 1,
			moves:    []string{"ChangeClaims p1"},
			blockers: []string{"p1 UpdatingClaims ClaimChanging", "p0 Waiting MaxConcurrentClaims"},
		},
		"as many at a time as maxConcurrent has": {
			pods: pods{inService("p2"), inService("p1"), inService("p0")}, claims: claims{claimChanges, claimChanges, claimChanges}, limit: 1, at: 2,
			moves:    []string{"ChangeClaims p2", "ChangeClaims p1"},
			blockers: []string{"p2 UpdatingClaims ClaimChanging", "p1 UpdatingClaims ClaimChanging", "p0 Waiting MaxConcurrentClaims"},
		},
		"a maxConcurrent of 0 is 1": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimChanges, claimChanges}, limit: 1,
			moves:    []string{"ChangeClaims p1"},
			blockers: []string{"p1 UpdatingClaims ClaimChanging", "p0 Waiting MaxConcurrentClaims"},
		},
		"what is under way counts, and the pod waits for it in service": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimUnderWay, claimChanges}, limit: 1, at: 1,
			blockers: []string{"p1 UpdatingClaims ClaimExpanding", "p0 Waiting MaxConcurrentClaims"},
		},
		"what is under way later in the order counts": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimChanges, claimUnderWay}, limit: 1, at: 1,
			blockers: []string{"p0 UpdatingClaims ClaimExpanding", "p1 Waiting MaxConcurrentClaims"},
		},
		"pods that are away for their claims count": {
			pods: pods{inService("p1")}, claims: claims{claimChanges}, limit: 2, at: 1,
			with:     func(w *Workload) { w.ChangingClaims = 1; w.Replicas = 2 },
			blockers: []string{"p1 Waiting MaxConcurrentClaims"},
		},
		"one claim is under way, another of the same pod changes": {
			pods: pods{inService("p1"), inService("p0")}, limit: 1, at: 1,
			claims:   claims{{claimUnderWay[0], claimChanges[0]}, claimChanges},
			moves:    []string{"ChangeClaims p1"},
			blockers: []string{"p1 UpdatingClaims ClaimChanging", "p0 Waiting MaxConcurrentClaims"},
		},
		"a second part of a claim that is under way keeps its place": {
			pods: pods{inService("p1"), inService("p0")}, limit: 1, at: 1,
			claims:   claims{claimChanges, claimThat(func(step *volumes.Step) { step.InFlight = true }, claimChanges)},
			moves:    []string{"ChangeClaims p0"},
			blockers: []string{"p0 UpdatingClaims ClaimChanging", "p1 Waiting MaxConcurrentClaims"},
		},
		"broken pods first, and whatever maxConcurrent says": {
			pods: pods{inService("p1"), crashing(inService("p0"))}, claims: claims{claimUnderWay, claimChanges}, limit: 2, at: 1,
			moves:    []string{"ChangeClaims p0", "MarkNotReady p0"},
			blockers: []string{"p1 UpdatingClaims ClaimExpanding"},
		},
		// Its change may be what it needs.
		"a broken pod does not wait for its claims": {
			pods: pods{crashing(inService("p0"))}, claims: claims{claimUnderWay}, limit: 1, at: 1,
			moves: []string{"MarkNotReady p0"},
		},
		"a pod that would restart starts its claims only with room in the budget": {
			pods: pods{notReady(updated("p2")), inService("p1"), inService("p0")}, claims: claims{nil, claimChanges, claimChanges}, limit: 1, at: 3,
			blockers: []string{"p2 Verifying PodNotReady", "p1 Waiting MaxUnavailable", "p0 Waiting MaxUnavailable"},
		},
		"a pod that would be recreated as well": {
			pods: pods{notReady(updated("p1")), inService("p0")}, claims: claims{nil, claimChanges}, limit: 1, at: 3,
			with:     func(w *Workload) { w.Target.Policy = reCreate },
			blockers: []string{"p1 Verifying PodNotReady", "p0 Waiting MaxUnavailable"},
		},
		"a pod that is not available anyway changes its claims": {
			pods: pods{notReady(updated("p1")), notReady(inService("p0"))}, claims: claims{nil, claimChanges}, limit: 1, at: 1,
			moves:    []string{"ChangeClaims p0"},
			blockers: []string{"p1 Verifying PodNotReady", "p0 UpdatingClaims ClaimChanging"},
		},
		"what restarts nothing takes no budget": {
			pods: pods{notReady(updated("p2")), inService("p1"), inService("p0")}, claims: claims{nil, claimChanges, claimChanges}, limit: 1, at: 3,
			with:     func(w *Workload) { w.Target.Revision = *testRevisions(t)["label"]; w.Pods[0].Held = true },
			moves:    []string{"ChangeClaims p1", "ChangeClaims p0"},
			blockers: []string{"p2 Verifying PodNotReady", "p1 UpdatingClaims ClaimChanging", "p0 UpdatingClaims ClaimChanging"},
		},
		"a change of claims alone takes no budget, and leaves others to theirs": {
			pods: pods{updated("p2"), updated("p1"), inService("p0")}, claims: claims{claimChanges, claimUnderWay, nil}, limit: 1, at: 2,
			moves:    []string{"ChangeClaims p2", "MarkNotReady p0"},
			blockers: []string{"p2 UpdatingClaims ClaimChanging", "p1 UpdatingClaims ClaimExpanding"},
		},
		"claims of pods at the target wait for each other": {
			pods: pods{updated("p2"), updated("p1"), updated("p0")}, claims: claims{claimChanges, claimChanges, claimSettled}, limit: 1, at: 1,
			moves:    []string{"ChangeClaims p2"},
			blockers: []string{"p2 UpdatingClaims ClaimChanging", "p1 Waiting MaxConcurrentClaims"},
		},
		"a pod at the target that is not finished goes on while its claims wait": {
			pods: pods{updated("p1"), marked(updated("p0"))}, claims: claims{claimUnderWay, claimChanges}, limit: 1, at: 1,
			moves:    []string{"MarkReady p0"},
			blockers: []string{"p1 UpdatingClaims ClaimExpanding"},
		},
		"a blocked claim holds nothing, and is named": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimBlocked, claimBlocked}, limit: 1, at: 1,
			moves:    []string{"MarkNotReady p1"},
			blockers: []string{"p1 Stuck ExpansionNotAllowed", "p0 Stuck ExpansionNotAllowed", "p0 Waiting MaxUnavailable"},
		},
		"a blocked claim of a settled pod is named": {
			pods: pods{updated("p0")}, claims: claims{claimBlocked}, limit: 1, at: 1,
			blockers: []string{"p0 Stuck ExpansionNotAllowed"},
		},
		"a claim that has no volume yet holds nothing": {
			pods: pods{inService("p0")}, claims: claims{claimWaits}, limit: 1, at: 1,
			moves: []string{"MarkNotReady p0"},
		},
		"what was refused is tried again beside the pod": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimTriesAgain(), claimChanges}, limit: 1, at: 2,
			moves:    []string{"ChangeClaims p1", "MarkNotReady p1"},
			blockers: []string{"p1 Stuck ClaimRefused", "p0 Waiting MaxUnavailable"},
		},
		"what another client asked for holds nothing, and is named": {
			pods: pods{inService("p1"), inService("p0")}, limit: 1, at: 1,
			claims:   claims{claimThat(func(step *volumes.Step) { step.Foreign = true }, claimUnderWay), claimChanges},
			moves:    []string{"MarkNotReady p1"},
			blockers: []string{"p1 UpdatingClaims ClaimExpanding", "p0 Waiting MaxUnavailable"},
		},
		"a drained pod goes back into service while its claims change": {
			pods: pods{marked(inService("p1")), marked(inService("p0"))}, claims: claims{claimUnderWay, claimChanges}, limit: 2, at: 2,
			moves: []string{"MarkReady p1", "ChangeClaims p0", "MarkReady p0"},
		},
		"a pod that is being deleted changes no claims": {
			pods: pods{inService("p0").Deleted(after(50))}, claims: claims{claimChanges}, limit: 1, at: 1,
			blockers: []string{"p0 Recreating Terminating"},
		},

		// Volumes that cannot grow while they are in use.
		"a pod goes for its claims within the budget": {
			pods: pods{updated("p1"), updated("p0")}, claims: claims{claimDetaches, claimDetaches}, limit: 1, at: 2,
			moves: []string{"Recreate p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a pod goes for its claims within maxConcurrent": {
			pods: pods{updated("p1"), updated("p0")}, claims: claims{claimDetaches, claimDetaches}, limit: 2, at: 1,
			moves: []string{"Recreate p1"}, blockers: []string{"p0 Waiting MaxConcurrentClaims"},
		},
		"a pod that is on its way out for its claims counts": {
			pods: pods{updated("p1").Deleted(after(50)), updated("p0")}, claims: claims{claimDetaches, claimChanges}, limit: 2, at: 1,
			blockers: []string{"p1 Recreating Terminating", "p0 Waiting MaxConcurrentClaims"},
		},
		"a pod that is to be updated goes for its claims, and comes back updated": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimDetaches, claimSettled}, limit: 1, at: 1,
			moves: []string{"Recreate p1"}, blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a pod in the middle of a change begins no other before it goes for its claims": {
			pods: pods{inService("p0").Generation(2, 1).Record(appsv1beta1.InPlaceUpdateState{
				Revision: "a", UpdateTimestamp: metav1.NewTime(patched),
				LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{"main": {ContainerID: "containerd://main-1"}},
			})},
			claims: claims{claimDetaches}, limit: 1, at: 1, blockers: []string{"p0 Restarting NotObserved"},
		},
		"no pod goes for its claims while one is not available": {
			pods: pods{notReady(updated("p1")), updated("p0")}, claims: claims{nil, claimDetaches}, limit: 1, at: 1,
			blockers: []string{"p1 Verifying PodNotReady", "p0 Waiting MaxUnavailable"},
		},
		"a pod whose other claim is recreated goes for the one of them": {
			pods: pods{notReady(updated("p1")), updated("p0")}, claims: claims{append(slices.Clone(claimRenewed), claimDetaches...), claimDetaches}, limit: 2, at: 1,
			moves: []string{"Recreate p1"}, blockers: []string{"p0 Waiting MaxConcurrentClaims"},
		},
		"a hook holds a pod that goes for its claims": {
			pods: pods{updated("p0").Label("hold", "true")}, claims: claims{claimDetaches}, limit: 1, at: 1,
			with: func(w *Workload) {
				w.Target.Lifecycle = &appsv1beta1.Lifecycle{PreDelete: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{"hold": "true"}}}
			},
			moves: []string{"SetLifecycle p0"},
		},

		// Volumes that another pod could not mount.
		"a pod that another could not replace is not recreated": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimKeepsPod(), nil}, limit: 1, at: 1,
			with:  func(w *Workload) { w.Target.Policy = reCreate },
			moves: []string{"Recreate p0"}, blockers: []string{"p1 Stuck VolumeNotMountable", "p1 Stuck ExpansionNotAllowed"},
		},
		// A volume grows under the new pod as under the old one.
		"a pod that goes anyway does not wait for what is under way": {
			pods: pods{inService("p1"), inService("p0")}, claims: claims{claimUnderWay, claimChanges}, limit: 1, at: 2,
			with:     func(w *Workload) { w.Target.Policy = reCreate },
			moves:    []string{"Recreate p1"},
			blockers: []string{"p0 Waiting MaxUnavailable"},
		},
		"a pod that goes anyway waits until its claims are changed": {
			pods: pods{inService("p0")}, claims: claims{claimChanges}, limit: 1, at: 1,
			with:     func(w *Workload) { w.Target.Policy = reCreate },
			moves:    []string{"ChangeClaims p0"},
			blockers: []string{"p0 UpdatingClaims ClaimChanging"},
		},
		"a pod that another could not replace changes in place": {
			pods: pods{inService("p1")}, claims: claims{claimKeepsPod()}, limit: 1, at: 1,
			moves: []string{"MarkNotReady p1"}, blockers: []string{"p1 Stuck ExpansionNotAllowed"},
		},
		"a pod that another could not replace, drained for it": {
			pods: pods{marked(inService("p1"))}, claims: claims{claimKeepsPod()}, limit: 1, at: 1,
			with:  func(w *Workload) { w.Target.Policy = reCreate },
			moves: []string{"MarkReady p1"}, blockers: []string{"p1 Stuck ExpansionNotAllowed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, tc.limit, tc.pods...)
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
			for _, move := range plan.Moves {
				g.Expect(move.Evict).To(BeFalse())
			}
		})
	}
}

// TestMakePlanToldOfClaims: what is said of claims, and when to look again.
func TestMakePlanToldOfClaims(t *testing.T) {
	g := NewWithT(t)
	w := workload(t, 1, inService("p1"), updated("p0"))
	w.MaxConcurrentClaims = 1
	w.Pods[0].Claims = claimThat(func(step *volumes.Step) { step.Since, step.Until = after(50), after(500) }, claimUnderWay)
	w.Pods[1].Claims = claimThat(func(step *volumes.Step) { step.Since, step.Until = after(60), after(400) }, claimBlocked)
	plan := MakePlan(w, planned)
	g.Expect(plan.Blockers).To(HaveExactElements(
		And(HaveField("Pod.Name", "p0"), HaveField("Claim", BeIdenticalTo(w.Pods[1].Claims[0].Claim)), HaveField("State", Stuck),
			HaveField("Message", "claim data: ExpansionNotAllowed"), HaveField("Since", after(60))),
		And(HaveField("Pod.Name", "p1"), HaveField("Claim", BeNil()), HaveField("State", UpdatingClaims),
			HaveField("Message", "claim data: ClaimExpanding"), HaveField("Since", after(50))),
	))
	g.Expect(plan.Recheck).To(Equal(after(400)))

	w.Target.Deadline = 40 * time.Second
	plan = MakePlan(w, planned)
	g.Expect(blockers(plan)).To(Equal([]string{"p1 Stuck ClaimExpanding", "p0 Stuck ExpansionNotAllowed"}), "longer than the deadline")

	// The claims come with the move, and those of a recreation, too.
	w = workload(t, 1, updated("p1"), updated("p0"))
	w.MaxConcurrentClaims = 2
	w.Pods[0].Claims, w.Pods[1].Claims = volumes.Claims{claimSettled[0], claimDetaches[0], claimBlocked[0]}, volumes.Claims{claimSettled[0], claimChanges[0]}
	plan = MakePlan(w, planned)
	g.Expect(moves(plan)).To(Equal([]string{"ChangeClaims p0", "Recreate p1"}))
	g.Expect(plan.Moves[1].Step.Claims).To(Equal(claimDetaches))
	g.Expect(plan.Moves[0].Step.Claims).To(Equal(claimChanges))
}

// TestMakePlanOfOtherClaimTemplates: a live pod gets no volume, and loses none.
func TestMakePlanOfOtherClaimTemplates(t *testing.T) {
	withVolume := func(name, claim string) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
			}})
		}
	}
	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		templates []string // of the target
		policy    appsv1beta1.PodUpdateStrategyType
		moves     []string
		blockers  []string
	}{
		"the same":  {pod: inService("p0").With(withVolume("data", "data-p0")), templates: []string{"data"}, moves: []string{"MarkNotReady p0"}},
		"none":      {pod: inService("p0"), templates: []string{}, moves: []string{"MarkNotReady p0"}},
		"not known": {pod: inService("p0").With(withVolume("data", "data-p0")), moves: []string{"MarkNotReady p0"}},
		"another order": {
			pod:       inService("p0").With(withVolume("data", "data-p0")).With(withVolume("log", "log-p0")),
			templates: []string{"log", "data"}, moves: []string{"MarkNotReady p0"},
		},
		"one added":   {pod: inService("p0").With(withVolume("data", "data-p0")), templates: []string{"data", "log"}, moves: []string{"Recreate p0"}},
		"one removed": {pod: inService("p0").With(withVolume("data", "data-p0")), templates: []string{}, moves: []string{"Recreate p0"}},
		"one renamed": {pod: inService("p0").With(withVolume("data", "data-p0")), templates: []string{"disk"}, moves: []string{"Recreate p0"}},
		"a claim of the pod's template is none of ours": {
			pod: inService("p0").With(withVolume("shared", "shared")), templates: []string{}, moves: []string{"MarkNotReady p0"},
		},
		"one added while claims did not follow, and now they do": {
			pod: updated("p0").Record(appsv1beta1.InPlaceUpdateState{Revision: "b"}), templates: []string{"data"}, moves: []string{"Recreate p0"},
		},
		"a new pod is not made again for what admission took out of it": {
			pod: updated("p0").Record(appsv1beta1.InPlaceUpdateState{Revision: "a"}), templates: []string{"data"},
		},
		"nor when it was restarted since, at the revision that it was created at": {
			pod: updated("p0").Record(appsv1beta1.InPlaceUpdateState{Revision: "b", CreatedRevision: "b"}), templates: []string{"data"},
		},
		"one added, and the pod came from another revision": {
			pod: updated("p0").Record(appsv1beta1.InPlaceUpdateState{Revision: "b", CreatedRevision: "a"}), templates: []string{"data"}, moves: []string{"Recreate p0"},
		},
		"one added, and the pod is kept": {
			pod: inService("p0"), templates: []string{"data"}, policy: appsv1beta1.InPlaceOnlyPodUpdateStrategyType,
			blockers: []string{"p0 Stuck ClaimTemplatesChanged"},
		},
		"one removed, and the pod is kept": {
			pod: inService("p0").With(withVolume("data", "data-p0")), templates: []string{}, policy: appsv1beta1.InPlaceOnlyPodUpdateStrategyType,
			blockers: []string{"p0 Stuck ClaimTemplatesChanged"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := workload(t, 1, tc.pod)
			w.Target.ClaimTemplates = tc.templates
			if tc.policy != "" {
				w.Target.Policy = tc.policy
			}
			plan := MakePlan(w, planned)
			g.Expect(moves(plan)).To(Equal(append([]string{}, tc.moves...)))
			g.Expect(blockers(plan)).To(Equal(append([]string{}, tc.blockers...)))
			for _, blocker := range plan.Blockers {
				g.Expect(blocker.Message).To(And(ContainSubstring("volumeClaimTemplates"), ContainSubstring("InPlaceOnly keeps the pod")))
			}
		})
	}
}
