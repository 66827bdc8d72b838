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

// The proxy may restart in service, the main container may not. The pods are
// looked at 20 s after the start, with a grace period of 30 s.
func TestNextKeepsReady(t *testing.T) {
	drained := func(b *builders.PodBuilder) *builders.PodBuilder {
		return b.Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(10)).Ready(false, after(12))
	}
	// atB was changed to b without a drain: only its proxy is another one.
	atB := func(proxy corev1.ContainerStatus) *builders.PodBuilder {
		return sidecarPod("b", proxyV2, proxy).Record(proxyRecord(proxyV1)).Generation(3, 3)
	}
	crashing := corev1.ContainerStatus{
		Name: "proxy", ContainerID: "containerd://proxy-7", ImageID: builders.ImageID(proxyV2),
		State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}},
	}
	const inService = "(not drained: keepReady names proxy)"

	for name, tc := range map[string]struct {
		pod       *builders.PodBuilder
		to        string
		keepReady []string
		action    Action
		state     State
		message   string
	}{
		"only what is kept ready restarts": {
			pod: sidecarPod("a", proxyV1, oldProxy()), to: "b", action: Patch, state: Patching, message: inService,
		},
		"another container restarts as well": {
			pod: sidecarPod("a", proxyV1, oldProxy()), to: "both", action: MarkNotReady, state: Draining, message: "to be updated to both",
		},
		"another container restarts": {
			pod: sidecarPod("a", proxyV1, oldProxy()), to: "main", action: MarkNotReady, state: Draining, message: "to be updated to main",
		},
		"both are kept ready": {
			pod: sidecarPod("a", proxyV1, oldProxy()), to: "both", keepReady: []string{"main", "proxy", "no-such"},
			action: Patch, state: Patching, message: "(not drained: keepReady names main, proxy)",
		},
		"what is kept ready restarts, and is not the one": {
			pod: sidecarPod("a", proxyV1, oldProxy()), to: "b", keepReady: []string{"log"}, action: MarkNotReady, state: Draining, message: "to be updated",
		},
		"a pod that is being drained for another revision": {
			pod: drained(sidecarPod("a", proxyV1, oldProxy())), to: "b", action: Patch, state: Patching, message: "proxy:1 to proxy:2",
		},
		"a drained pod, after its change": {
			pod: drained(atB(newProxy(15))), to: "b", action: MarkReady, state: Verifying, message: "runs what it should",
		},
		"a new pod that was never put into service": {
			pod: sidecarPod("a", proxyV1, oldProxy()).With(withoutCondition(appsv1beta1.InPlaceUpdateReady)).Ready(false, after(0)),
			to:  "b", action: Patch, state: Patching, message: "proxy:1 to proxy:2",
		},
		"overtaken by a change that drains": {
			pod: atB(oldProxy()), to: "both", action: MarkNotReady, state: Draining, message: "to be updated to both",
		},
		"overtaken by a change that drains, and out of service": {
			pod: drained(atB(oldProxy())), to: "both", action: Wait, state: Grace, message: "30s",
		},
		"a crash loop, back to the revision before": {
			pod: atB(crashing).Ready(false, after(5)), to: "a", action: Patch, state: Patching, message: "proxy:2 to proxy:1 " + inService,
		},
		"a crash loop, on to a revision that drains": {
			pod: atB(crashing).Ready(false, after(5)), to: "both", action: MarkNotReady, state: Draining, message: "to be updated to both",
		},
		"a crash loop, at its revision": {
			pod: atB(crashing).Ready(false, after(5)), to: "b", action: Wait, state: Restarting, message: "proxy",
		},
		"restarting, in service": {
			pod: atB(oldProxy()), to: "b", action: Wait, state: Restarting, message: "proxy is being restarted",
		},
		"done, in service": {pod: atB(newProxy(3)), to: "b", action: Wait, state: Settled},
		"without the gate": {
			pod: sidecarPod("a", proxyV1, oldProxy()).With(func(p *corev1.Pod) { p.Spec.ReadinessGates = nil }),
			to:  "b", action: Patch, state: Patching, message: inService,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revisions := map[string]*Revision{
				"a":    {Name: "a", Template: sidecarTemplate(t)},
				"b":    {Name: "b", Template: sidecarTemplate(t, "proxy:1", proxyV2)},
				"main": {Name: "main", Template: sidecarTemplate(t, alpineImage, latestImage)},
				"both": {Name: "both", Template: sidecarTemplate(t, alpineImage, latestImage, "proxy:1", proxyV2)},
			}
			pod := tc.pod.Build()
			target := Target{Revision: *revisions[tc.to], Policy: inPlaceIfPossible, GracePeriod: 30 * time.Second, KeepReady: tc.keepReady}
			if tc.keepReady == nil {
				target.KeepReady = []string{"proxy"}
			}
			step := Next(PodFacts{Pod: pod, From: revisions[RevisionOf(pod)]}, target, after(20))
			g.Expect(step.Action).To(Equal(tc.action), step.Message)
			g.Expect(step.State).To(Equal(tc.state), step.Message)
			g.Expect(step.Message).To(ContainSubstring(tc.message))
			if IsMarkedNotReady(pod) {
				g.Expect(step.Message).NotTo(ContainSubstring("not drained"))
			}
		})
	}
}

// A change of what is kept ready leaves in the record what restarts of the
// change before it: the pod goes back into service when both are done.
func TestKeepReadyOvertakesAChangeThatDrained(t *testing.T) {
	g := NewWithT(t)
	state := record(entry(alpineImage))
	pod := sidecarPod("b", proxyV1, oldProxy()).With(func(p *corev1.Pod) { p.Spec.Containers[0].Image = latestImage }).
		Record(state).Generation(3, 3).Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionFalse, after(-5)).Ready(false, after(-4)).Build()
	facts := PodFacts{Pod: pod, From: &Revision{Name: "b", Template: sidecarTemplate(t, alpineImage, latestImage)}}
	target := Target{
		Revision: Revision{Name: "c", Template: sidecarTemplate(t, alpineImage, latestImage, "proxy:1", proxyV2)},
		Policy:   inPlaceIfPossible, KeepReady: []string{"proxy"},
	}
	step := Next(facts, target, after(1))
	g.Expect(step.Action).To(Equal(Patch))
	g.Expect(step.Change.Images).To(ConsistOf(proxyTo(proxyV1, proxyV2)))
	g.Expect(step.Record.LastContainerStatuses).To(And(HaveKeyWithValue("main", beEarlier(entry(alpineImage))), HaveKey("proxy")))

	patch, err := RevisionPatch(pod, step)
	g.Expect(err).NotTo(HaveOccurred())
	changed := mergePod(t, pod, patch)
	changed.Status.InitContainerStatuses[2] = newProxy(3)
	g.Expect(Next(PodFacts{Pod: changed}, target, after(4))).To(And(HaveField("State", Restarting), HaveField("Message", ContainSubstring("main"))))
	changed.Status.ContainerStatuses[0] = newContainer()
	g.Expect(Next(PodFacts{Pod: changed}, target, after(60)).Action).To(Equal(MarkReady))
}

func TestKeepReadyCountsAgainstTheBudget(t *testing.T) {
	g := NewWithT(t)
	from := &Revision{Name: "a", Template: sidecarTemplate(t)}
	pods := []PodFacts{}
	for range 3 {
		pods = append(pods, PodFacts{Pod: sidecarPod("a", proxyV1, oldProxy()).Build(), From: from})
	}
	plan := MakePlan(Workload{
		Target: Target{
			Revision: Revision{Name: "b", Template: sidecarTemplate(t, "proxy:1", proxyV2)},
			Policy:   inPlaceIfPossible, KeepReady: []string{"proxy"},
		},
		Replicas: 3, MaxUnavailable: 1, Pods: pods,
	}, patched)
	g.Expect(plan.Moves).To(HaveLen(1))
	g.Expect(plan.Moves[0].Step.Action).To(Equal(Patch))
	g.Expect(plan.Moves[0].Note).To(And(ContainSubstring("not drained: keepReady names proxy"), ContainSubstring("1 of 1 unavailable")))
	g.Expect(plan.Blockers).To(HaveLen(2))
	g.Expect(plan.Blockers).To(HaveEach(HaveField("Reason", ReasonBudget)))
}
