// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// unheeded is why a pod without a gate is not drained.
var unheeded = &Refusal{Reason: ReasonCannotDrain, Message: "the API server does not heed the label"}

// labeled is a pod without a gate that has the label.
func labeled(drainers string) *builders.PodBuilder {
	return builders.Pod("sample-0", "a", alpineImage).Label(appsv1beta1.DrainedLabel, drainers).Condition(corev1.ContainersReady, corev1.ConditionTrue, after(-50))
}

// wantsB is the step of a pod of revision a whose image is to be another.
func wantsB(t *testing.T, pod *corev1.Pod, change func(*Target), services ...string) Step {
	t.Helper()
	target := Target{
		Revision: Revision{Name: "b", Template: simple(t, latestImage)}, Policy: inPlaceIfPossible, GracePeriod: 5 * time.Second,
	}
	if change != nil {
		change(&target)
	}
	return Next(PodFacts{Pod: pod, From: &Revision{Name: "a", Template: simple(t, alpineImage)}, Services: services}, target, after(20))
}

func TestDrainByLabel(t *testing.T) {
	cannot := func(target *Target) { target.CannotDrain = unheeded }
	must := func(target *Target) { target.CannotDrain, target.MustDrain = unheeded, true }
	mustOnly := func(target *Target) { must(target); target.Policy = inPlaceOnly }
	mustKeep := func(target *Target) { must(target); target.KeepReady = []string{"main"} }
	for name, tc := range map[string]struct {
		pod      *builders.PodBuilder
		target   func(*Target)
		services []string
		want     Step // Action, State, Reason
		message  string
	}{
		"a pod that serves": {
			pod: builders.Pod("sample-0", "a", alpineImage), services: []string{"web"},
			want: Step{Action: MarkNotReady, State: Draining}, message: "to be updated to b",
		},
		"a slice lists it": {
			pod: labeled("update").Ready(false, after(0)), services: []string{"web"},
			want: Step{State: Draining, Reason: ReasonEndpointsReady}, message: "Service web",
		},
		"its grace period runs": {
			pod: labeled("update").Ready(false, after(16)), want: Step{State: Grace, Reason: ReasonGracePeriod}, message: "5s",
		},
		"its grace period is over": {
			pod: labeled("update").Ready(false, after(15)), want: Step{Action: Patch, State: Patching}, message: "image of main",
		},
		"another drains it, too": {
			pod: labeled("sidecars.update").Ready(false, after(15)), want: Step{Action: Patch, State: Patching}, message: "image of main",
		},
		"only another drains it": {
			pod: labeled("sidecars").Ready(false, after(15)), want: Step{Action: MarkNotReady, State: Draining}, message: "to be updated to b",
		},
		"it is ready again, since the API server did not heed the label for a moment": {
			pod: labeled("update").Ready(true, after(15)), want: Step{Action: MarkNotReady, State: Draining}, message: "to be updated to b",
		},
		"the API server does not heed the label": {
			pod: builders.Pod("sample-0", "a", alpineImage), target: cannot, services: []string{"web"},
			want: Step{Action: Patch, State: Patching}, message: "(not drained: the API server does not heed the label)",
		},
		"the API server does not heed it any more": {
			pod: labeled("update").Ready(true, after(15)), target: cannot, services: []string{"web"},
			want: Step{Action: Patch, State: Patching}, message: "(not drained: the API server does not heed the label)",
		},
		"the API server does not heed it, and the pod has the gate": {
			pod: builders.Pod("sample-0", "a", alpineImage).Gated(corev1.ConditionTrue, after(-50)), target: must,
			want: Step{Action: MarkNotReady, State: Draining}, message: "to be updated to b",
		},
		"it must be drained, and cannot be": {
			pod: builders.Pod("sample-0", "a", alpineImage), target: must,
			want: Step{Action: Recreate, State: Recreating, Reason: ReasonCannotDrain}, message: "does not heed the label",
		},
		"it must be drained, cannot be, and must not be recreated": {
			pod: builders.Pod("sample-0", "a", alpineImage), target: mustOnly,
			want: Step{State: Stuck, Reason: ReasonCannotDrain}, message: "name the containers in keepReady",
		},
		"it must be drained, cannot be, and its container may restart in service": {
			pod: builders.Pod("sample-0", "a", alpineImage), target: mustKeep,
			want: Step{Action: Patch, State: Patching}, message: "(not drained: keepReady names main)",
		},
		"it must be drained, cannot be, and does not serve": {
			pod: builders.Pod("sample-0", "a", alpineImage).Ready(false, after(0)), target: must,
			want: Step{Action: Patch, State: Patching}, message: "image of main",
		},
		"it was drained before the API server ceased to heed it": {
			pod: labeled("update").Ready(false, after(0)), target: must, want: Step{Action: Patch, State: Patching}, message: "image of main",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			step := wantsB(t, tc.pod.Build(), tc.target, tc.services...)
			g.Expect(step.Message).To(ContainSubstring(tc.message))
			g.Expect(Step{Action: step.Action, State: step.State, Reason: step.Reason}).To(Equal(tc.want))
		})
	}
}

// The patches are made as the API server takes them: by a merge.
func TestPatchesOfADrainByLabel(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", alpineImage).Condition(corev1.ContainersReady, corev1.ConditionTrue, after(-50)).Build()
	step := wantsB(t, pod, nil)
	g.Expect(DrainsByLabel(pod, step)).To(BeTrue())

	body, err := ReadinessPatch(pod, step, metav1.NewTime(after(20)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(ContainSubstring(`"resourceVersion":"1"`))
	drained := mergePod(t, pod, body)
	g.Expect(drained.Labels).To(HaveKeyWithValue(appsv1beta1.DrainedLabel, appsv1beta1.DrainedForUpdate))
	g.Expect(condition(drained, corev1.PodReady)).To(And(HaveField("Status", corev1.ConditionFalse),
		HaveField("Reason", "InPlaceUpdating"), HaveField("Message", "to be updated to b")))
	g.Expect(IsMarkedNotReady(drained)).To(BeTrue())
	g.Expect(unreadySince(drained)).To(BeTemporally("==", after(20)))

	drained.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(after(20))
	step = finishOf(observedOf(drained, after(30)), Target{}, after(30))
	g.Expect(step.Action).To(Equal(MarkReady))
	body, err = ReadinessPatch(drained, step, metav1.NewTime(after(30)))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(ContainSubstring(`"resourceVersion":"1"`))
	back := mergePod(t, drained, body)
	g.Expect(back.Labels).NotTo(HaveKey(appsv1beta1.DrainedLabel))
	g.Expect(condition(back, corev1.PodReady)).To(And(HaveField("Status", corev1.ConditionTrue),
		HaveField("Reason", ""), HaveField("Message", "")))
	g.Expect(readySince(back)).To(BeTemporally("==", after(30)))
}

// A pod that was out of service before it was drained has been so since then.
func TestDrainOfAPodThatIsNotReady(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", alpineImage).Ready(false, after(3)).Build()

	body, err := ReadinessPatch(pod, Step{Action: MarkNotReady}, metav1.NewTime(after(20)))

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(unreadySince(mergePod(t, pod, body))).To(BeTemporally("==", after(3)))
}

func TestTheLastOneEndsTheDrain(t *testing.T) {
	gated := func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/ready"}}
	}
	for name, tc := range map[string]struct {
		pod     *builders.PodBuilder
		started int
		left    string
		ready   corev1.ConditionStatus
	}{
		"we alone":                      {labeled("update"), 0, "", corev1.ConditionTrue},
		"we before another":             {labeled("sidecars.update"), 5, "sidecars", corev1.ConditionFalse},
		"its containers are not ready":  {labeled("update").Condition(corev1.ContainersReady, corev1.ConditionFalse, after(0)), 5, "", corev1.ConditionFalse},
		"another gate of it is closed":  {labeled("update").With(gated), 5, "", corev1.ConditionFalse},
		"it was written twice, by hand": {labeled("update..update"), 5, "", corev1.ConditionTrue},
		"its kubelet, which may be gone, has done nothing meanwhile": {labeled("update"), -1, "", corev1.ConditionFalse},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := tc.pod.Ready(false, after(0)).Build()
			pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(after(tc.started))
			body, err := ReadinessPatch(pod, Step{Action: MarkReady}, metav1.NewTime(after(20)))
			g.Expect(err).NotTo(HaveOccurred())
			back := mergePod(t, pod, body)
			g.Expect(back.Labels[appsv1beta1.DrainedLabel]).To(Equal(tc.left))
			g.Expect(HasDrainedLabel(back)).To(Equal(tc.left != ""))
			g.Expect(condition(back, corev1.PodReady).Status).To(Equal(tc.ready))
		})
	}
}

func TestWeAddOurselvesToADrain(t *testing.T) {
	for before, after := range map[string]string{"": "update", "sidecars": "sidecars.update", "update": "update", "zz.aa": "aa.update.zz"} {
		NewWithT(t).Expect(*withDrainer(labeled(before).Build())).To(Equal(after))
	}
}

func TestEndDrain(t *testing.T) {
	for name, tc := range map[string]struct {
		drainers string
		keepOwn  bool
		ends     bool
		left     string
	}{
		"ours, of a workload that updates the pod": {"update", true, false, "update"},
		"ours, of none":                           {"update", false, true, ""},
		"of an unknown client":                    {"me", true, true, ""},
		"of an unknown client, beside ours":       {"me.update", true, true, "update"},
		"of an unknown client, beside ours, both": {"me.update", false, true, ""},
		"of no client":                            {"", true, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := labeled(tc.drainers).Ready(false, after(0)).Build()
			body, err := EndDrain(pod, tc.keepOwn, metav1.NewTime(after(20)))
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(body != nil).To(Equal(tc.ends))
			if body == nil {
				return
			}
			g.Expect(string(body)).To(ContainSubstring(`"resourceVersion":"1"`))
			g.Expect(mergePod(t, pod, body).Labels[appsv1beta1.DrainedLabel]).To(Equal(tc.left))
			g.Expect(isReady(mergePod(t, pod, body))).To(BeFalse(), "its kubelet may be gone")
		})
	}
	unlabeled, err := EndDrain(builders.Pod("sample-0", "a", alpineImage).Build(), false, metav1.NewTime(after(20)))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	NewWithT(t).Expect(unlabeled).To(BeNil())
}

func TestTrialDrain(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "a", alpineImage).Build()
	body, err := TrialDrain(pod, metav1.NewTime(after(20)))
	g.Expect(err).NotTo(HaveOccurred())
	answer := mergePod(t, pod, body)
	g.Expect(condition(answer, corev1.PodReady).Status).To(Equal(corev1.ConditionTrue))
	g.Expect(KeepsDrained(answer)).To(BeFalse(), "nothing heeds it")

	kept := answer.DeepCopy()
	kept.Status.Conditions = builders.Pod("sample-0", "a", alpineImage).Ready(false, after(0)).Build().Status.Conditions
	g.Expect(KeepsDrained(kept)).To(BeTrue())
	delete(kept.Labels, appsv1beta1.DrainedLabel)
	g.Expect(KeepsDrained(kept)).To(BeFalse(), "admission took the label off")
}

// A pod that serves between two batches cannot be drained for the second: it stays as it is,
// whatever its policy.
func TestTheNextBatchOfAPodThatCannotBeDrained(t *testing.T) {
	for _, policy := range []appsv1beta1.PodUpdateStrategyType{inPlaceIfPossible, inPlaceOnly} {
		w := workload(t, 1, betweenBatches("sample-0"))
		w.Target.Policy, w.Target.CannotDrain, w.Target.MustDrain = policy, unheeded, true
		plan := MakePlan(w, patched.Add(1))
		NewWithT(t).Expect(plan.Moves).To(BeEmpty())
		NewWithT(t).Expect(plan.Blockers).To(ConsistOf(And(HaveField("State", Stuck), HaveField("Reason", ReasonCannotDrain))))
	}
}

// A budget is asked for a pod that is taken out of service, and again for one that was, and
// is ready since the API server does not heed the label: it serves, and counts as healthy.
func TestAPodThatServesDespiteItsDrainIsAskedForAgain(t *testing.T) {
	drained := func() *builders.PodBuilder {
		return builders.Pod("p0", "a", alpineImage).Label(appsv1beta1.DrainedLabel, "update")
	}
	for name, tc := range map[string]struct {
		pod         *builders.PodBuilder
		cannotDrain *Refusal
		action      Action
		evict       bool
	}{
		"one that serves":                   {builders.Pod("p0", "a", alpineImage), nil, MarkNotReady, true},
		"one that serves despite its drain": {drained(), nil, MarkNotReady, true},
		"one that cannot be drained again":  {drained(), &Refusal{Reason: ReasonCannotDrain}, Patch, true},
		"one that is out of service":        {drained().Ready(false, planned.Add(-time.Minute)), nil, Patch, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := workload(t, 1, tc.pod)
			w.Target.RespectBudgets, w.Target.CannotDrain = true, tc.cannotDrain
			NewWithT(t).Expect(MakePlan(w, planned).Moves).To(ConsistOf(And(HaveField("Step.Action", tc.action), HaveField("Evict", tc.evict))))
		})
	}
}
