// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// The revisions of these tests: a and b differ in the image, label from a in a
// label, env from a in the environment, twin from a in nothing.
func testRevisions(t testing.TB) map[string]*Revision {
	t.Helper()
	const spec = `"spec":{"containers":[{"name":"main","image":"nginx:alpine"}]}`
	return map[string]*Revision{
		"a":     {Name: "a", Template: parse(t, `{`+spec+`}`)},
		"b":     {Name: "b", Template: parse(t, `{"spec":{"containers":[{"name":"main","image":"nginx:latest"}]}}`)},
		"label": {Name: "label", Template: parse(t, `{"metadata":{"labels":{"tier":"web"}},`+spec+`}`)},
		"env":   {Name: "env", Template: parse(t, `{"spec":{"containers":[{"name":"main","image":"nginx:alpine","env":[{"name":"LEVEL"}]}]}}`)},
		"twin":  {Name: "twin", Template: parse(t, `{`+spec+`}`)},
	}
}

// settledPod is at revision a, with the gate, and in service.
func settledPod() *builders.PodBuilder {
	return builders.Pod("sample-0", "a", alpineImage).Gated(corev1.ConditionTrue, builders.Start)
}

// drainedPod is at revision a, marked not ready after 10 s, read back after 12.
func drainedPod() *builders.PodBuilder {
	return settledPod().Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(10)).Ready(false, after(12))
}

// changedPod was drained and changed to revision b at the start; the kubelet
// has seen it, and the container shows a status.
func changedPod(status corev1.ContainerStatus) *builders.PodBuilder {
	return builders.Pod("sample-0", "b", latestImage).Record(record(entry(alpineImage))).Generation(2, 2).
		Status(status).Gated(corev1.ConditionFalse, after(-5)).Ready(false, after(-4))
}

func oldContainer() corev1.ContainerStatus {
	return builders.RunningContainer("main", "main-1", alpineImage, builders.Start)
}

func newContainer() corev1.ContainerStatus {
	return builders.RunningContainer("main", "main-2", latestImage, after(3))
}

func imageTo(from, to string) []ImageChange {
	return []ImageChange{{Container: "main", From: from, To: to}}
}

// All pods are looked at 20 s after the start, with a grace period of 30 s and
// no deadline.
// finishOf returns the step of a pod that stays at its revision.
func finishOf(o *observed, target Target, now time.Time) Step {
	return (&situation{facts: PodFacts{Pod: o.pod}, observed: o, target: &target, now: now}).finish()
}

func TestNext(t *testing.T) {
	for name, tc := range map[string]struct {
		pod      *builders.PodBuilder
		from, to string
		policy   appsv1beta1.PodUpdateStrategyType
		services []string
		noGrace  bool
		// want is compared as a whole, but for Record, LeadsToPatch and the text of Message.
		want    Step
		message string
	}{
		"a new pod with the gate is put into service": {
			pod: settledPod().Gated("", after(0)).With(withoutCondition(appsv1beta1.InPlaceUpdateReady)).Ready(false, after(0)), to: "a",
			want: Step{Action: MarkReady, State: Verifying}, message: "runs what it should",
		},
		"a new pod with the gate is put into service under ReCreate as well": {
			pod: settledPod().Gated("", after(0)).With(withoutCondition(appsv1beta1.InPlaceUpdateReady)).Ready(false, after(0)), to: "a",
			policy: reCreate, want: Step{Action: MarkReady, State: Verifying}, message: "runs what it should",
		},
		"settled":                     {pod: settledPod(), to: "a", want: Step{State: Settled}},
		"settled, without the gate":   {pod: builders.Pod("sample-0", "a", alpineImage), to: "a", want: Step{State: Settled}},
		"settled, at a revision lost": {pod: settledPod(), from: "none", to: "a", want: Step{State: Settled}},
		"in service": {
			pod: settledPod(), to: "b", message: "to be updated to b",
			want: Step{Action: MarkNotReady, State: Draining, Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"marked not ready, Ready is still True": {
			pod: drainedPod().Ready(true, builders.Start), to: "b", services: []string{"web"}, message: "kubelet has not reported",
			want: Step{State: Draining, Reason: ReasonStillReady, Since: after(10), Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"not ready, still in EndpointSlices": {
			pod: drainedPod(), to: "b", services: []string{"admin", "web"}, noGrace: true, message: "Service admin, web",
			want: Step{State: Draining, Reason: ReasonEndpointsReady, Since: after(12), Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"grace period, from the later transition on, Ready": {
			pod: drainedPod(), to: "b", message: "30s",
			want: Step{State: Grace, Reason: ReasonGracePeriod, Since: after(12), Until: after(42), Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"grace period, from the later transition on, the gate": {
			pod: drainedPod().Ready(false, after(-100)), to: "b", message: "30s",
			want: Step{State: Grace, Reason: ReasonGracePeriod, Since: after(10), Until: after(40), Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"grace period is over": {
			pod: drainedPod().Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(-11)).Ready(false, after(-10)), to: "b",
			want: Step{Action: Patch, State: Patching, Change: Change{Images: imageTo(alpineImage, latestImage)}}, message: "image of main: nginx:alpine to nginx:latest",
		},
		"node lost, Ready is Unknown": {
			pod: drainedPod().Condition(corev1.PodReady, corev1.ConditionUnknown, after(-50)), to: "b", noGrace: true,
			want: Step{Action: Patch, State: Patching, Change: Change{Images: imageTo(alpineImage, latestImage)}}, message: "image of main",
		},
		"node lost before it was marked": {
			pod: settledPod().Condition(corev1.PodReady, corev1.ConditionUnknown, after(-50)), to: "b", message: "to be updated to b",
			want: Step{Action: MarkNotReady, State: Draining, Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"node lost at its revision": {
			pod: settledPod().Condition(corev1.PodReady, corev1.ConditionUnknown, after(-50)), to: "a",
			want: Step{State: Verifying, Reason: ReasonPodNotReady, Since: after(-50)}, message: "not ready",
		},
		"a label is changed without a drain": {
			pod: settledPod(), to: "label", services: []string{"web"}, message: "labels or annotations",
			want: Step{Action: Patch, State: Patching, Change: Change{Labels: map[string]*string{"tier": ptr.To("web")}}},
		},
		"no gate: drained by the label": {
			pod: builders.Pod("sample-0", "a", alpineImage), to: "b", services: []string{"web"}, message: "to be updated to b",
			want: Step{Action: MarkNotReady, State: Draining, Change: Change{Images: imageTo(alpineImage, latestImage)}},
		},
		"a refused field": {
			pod: settledPod(), to: "env", message: "spec.containers[main].env was added",
			want: Step{Action: Recreate, State: Recreating, Reason: ReasonFieldImmutable},
		},
		"a refused field under InPlaceOnly": {
			pod: settledPod(), to: "env", policy: inPlaceOnly, message: "spec.containers[main].env was added",
			want: Step{State: Stuck, Reason: ReasonFieldImmutable},
		},
		"a refused field under InPlaceOnly, of a drained pod": {
			pod: drainedPod(), to: "env", policy: inPlaceOnly, want: Step{Action: MarkReady, State: Verifying}, message: "runs what it should",
		},
		"another image under ReCreate": {
			pod: settledPod(), to: "b", policy: reCreate, want: Step{Action: Recreate, State: Recreating, Reason: ReasonPolicyReCreate}, message: "ReCreate",
		},
		"another label under ReCreate": {
			pod: settledPod(), to: "label", policy: reCreate, want: Step{Action: Recreate, State: Recreating, Reason: ReasonPolicyReCreate}, message: "ReCreate",
		},
		"an unknown policy is ReCreate": {
			pod: settledPod(), to: "b", policy: "FromTheFuture", want: Step{Action: Recreate, State: Recreating, Reason: ReasonPolicyReCreate}, message: "ReCreate",
		},
		"an equal template under ReCreate": {
			pod: settledPod(), to: "twin", policy: reCreate, want: Step{Action: Patch, State: Patching}, message: "revision label only",
		},
		"from a revision that is lost": {
			pod: settledPod(), from: "none", to: "b", want: Step{Action: Recreate, State: Recreating, Reason: ReasonRevisionUnknown}, message: "not in the history",
		},
		"from a revision that is lost, under InPlaceOnly": {
			pod: settledPod(), from: "none", to: "b", policy: inPlaceOnly, want: Step{State: Stuck, Reason: ReasonRevisionUnknown}, message: "not in the history",
		},
		"terminating": {
			pod: settledPod().Deleted(after(15)), to: "b", message: "being deleted",
			want: Step{State: Recreating, Reason: ReasonTerminating, Since: after(15), Until: after(75)},
		},
		"terminating at its revision": {
			pod: settledPod().Deleted(after(15)), to: "a", message: "being deleted",
			want: Step{State: Recreating, Reason: ReasonTerminating, Since: after(15), Until: after(75)},
		},
		"restarting": {
			pod: changedPod(oldContainer()), to: "b", message: "main is being restarted",
			want: Step{State: Restarting, Reason: ReasonContainerRestarting, Since: patched},
		},
		"restarted": {
			pod: changedPod(newContainer()), to: "b", want: Step{Action: MarkReady, State: Verifying, Since: patched}, message: "runs what it should",
		},
		"marked ready, not read back": {
			pod: changedPod(newContainer()).Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionTrue, after(15)), to: "b",
			want: Step{State: Verifying, Reason: ReasonPodNotReady, Since: patched}, message: "not ready",
		},
		"rolled back while Ready is still True": {
			pod: drainedPod().Ready(true, builders.Start), to: "a", want: Step{Action: MarkReady, State: Verifying}, message: "runs what it should",
		},
		"rolled back in the grace period": {
			pod: drainedPod(), to: "a", want: Step{Action: MarkReady, State: Verifying}, message: "runs what it should",
		},
		"rolled back while restarting": {
			pod: changedPod(oldContainer()), to: "a", noGrace: true, message: "nginx:latest to nginx:alpine",
			want: Step{Action: Patch, State: Patching, Change: Change{Images: imageTo(latestImage, alpineImage)}},
		},
		"rolled back in a crash loop": {
			pod: changedPod(waitingContainer("containerd://main-7", "CrashLoopBackOff")), to: "a", noGrace: true, message: "nginx:latest to nginx:alpine",
			want: Step{Action: Patch, State: Patching, Change: Change{Images: imageTo(latestImage, alpineImage)}},
		},
		"rolled back after a failed pull": {
			pod: changedPod(waitingContainer("", "ImagePullBackOff")), to: "a", noGrace: true, message: "nginx:latest to nginx:alpine",
			want: Step{Action: Patch, State: Patching, Change: Change{Images: imageTo(latestImage, alpineImage)}},
		},
		"a refused field, while restarting": {
			pod: changedPod(oldContainer()), to: "env", message: "env was added", want: Step{Action: Recreate, State: Recreating, Reason: ReasonFieldImmutable},
		},
		"a refused field under InPlaceOnly, while restarting": {
			pod: changedPod(oldContainer()), to: "env", policy: inPlaceOnly, message: "main is being restarted",
			want: Step{State: Restarting, Reason: ReasonContainerRestarting, Since: patched},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revisions, pod := testRevisions(t), tc.pod.Build()
			target := Target{Revision: *revisions[tc.to], Policy: tc.policy, GracePeriod: 30 * time.Second}
			if tc.policy == "" {
				target.Policy = inPlaceIfPossible
			}
			if tc.noGrace {
				target.GracePeriod = 0
			}
			facts := PodFacts{Pod: pod, From: revisions[RevisionOf(pod)], Services: tc.services}
			if tc.from != "" {
				facts.From = revisions[tc.from]
			}
			before := pod.DeepCopy()

			step := Next(facts, target, after(20))
			g.Expect(step.Message).To(ContainSubstring(tc.message))
			if step.State == Settled {
				g.Expect(step.Message).To(BeEmpty())
			} else {
				g.Expect(step.Message).NotTo(BeEmpty())
			}
			g.Expect(step.Record != nil).To(Equal(step.Action == Patch), "a record goes with a patch, and with nothing else")
			g.Expect(step.LeadsToPatch).To(Equal(leadsToPatch(step)))
			step.Message, step.Record, step.LeadsToPatch = "", nil, false
			g.Expect(step).To(BeComparableTo(tc.want))
			g.Expect(pod).To(Equal(before), "the facts are not changed")
		})
	}
}

func withoutCondition(conditionType corev1.PodConditionType) func(pod *corev1.Pod) {
	return func(pod *corev1.Pod) {
		kept := pod.Status.Conditions[:0]
		for _, c := range pod.Status.Conditions {
			if c.Type != conditionType {
				kept = append(kept, c)
			}
		}
		pod.Status.Conditions = kept
	}
}

// What the record of an overtaking patch says of the change that it overtakes.
func TestNextRecordsWhatItOvertakes(t *testing.T) {
	for name, tc := range map[string]struct {
		status      corev1.ContainerStatus
		observed    int64
		superseding bool
		image       string
	}{
		"the kubelet has not seen it":                      {oldContainer(), 1, true, alpineImage},
		"the kubelet has seen it":                          {oldContainer(), 2, true, alpineImage},
		"a crash loop, proved to be that of the new image": {crashLoop(), 2, false, latestImage},
		"a failed pull":                                    {failedPull(), 2, false, alpineImage},
		"done":                                             {newContainer(), 2, false, latestImage},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revisions := testRevisions(t)
			facts := PodFacts{Pod: changedPod(tc.status).Generation(2, tc.observed).Build(), From: revisions["b"]}
			step := Next(facts, Target{Revision: *revisions["a"], Policy: inPlaceIfPossible}, after(20))
			g.Expect(step.Action).To(Equal(Patch))
			g.Expect(step.Record.Revision).To(Equal("a"))
			g.Expect(step.Record.UpdateTimestamp.Time).To(Equal(after(20)))
			g.Expect(step.Record.LastContainerStatuses).To(HaveKey("main"))
			g.Expect(step.Record.LastContainerStatuses["main"].Superseding).To(Equal(tc.superseding))
			g.Expect(step.Record.LastContainerStatuses["main"].Image).To(Equal(tc.image))
		})
	}
}

// crashLoop is the status of a container that was started from the new image,
// and ended.
func crashLoop() corev1.ContainerStatus {
	status := waitingContainer("containerd://main-7", "CrashLoopBackOff")
	status.ImageID = builders.ImageID(latestImage)
	return status
}

// failedPull is the status of a container that was stopped for an image that
// cannot be pulled.
func failedPull() corev1.ContainerStatus {
	status := waitingContainer("", "ImagePullBackOff")
	status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ContainerID: "containerd://main-1"}
	return status
}

func TestAPodWithoutANodeSaysWhy(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "large", "app:v1").Ready(false, after(1)).With(func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/2 nodes are available: 2 Insufficient cpu.",
		})
	}).Build()
	large := sizes["large"]
	step := Next(PodFacts{Pod: pod, From: &large}, to("large"), after(10))
	g.Expect(step.State).To(Equal(Verifying))
	g.Expect(step.Reason).To(Equal("Unschedulable"))
	g.Expect(step.Message).To(Equal("0/2 nodes are available: 2 Insufficient cpu."))
}
