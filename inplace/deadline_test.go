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

// Pods on their way to revision b, with a deadline of 60 s. A second before the
// end they say when it is; at the end they are stuck, for the same reason.
func TestNextDeadline(t *testing.T) {
	const deadline = time.Minute
	for name, tc := range map[string]struct {
		pod      *builders.PodBuilder
		services []string
		end      time.Time
		state    State
		reason   string
	}{
		"restarting": {
			pod: changedPod(oldContainer()), end: after(60), state: Restarting, reason: ReasonContainerRestarting,
		},
		"not seen by the kubelet of a lost node": {
			pod: changedPod(oldContainer()).Generation(2, 1), end: after(60), state: Restarting, reason: ReasonNotObserved,
		},
		"restarted and not ready": {
			pod: changedPod(newContainer()).Gated(corev1.ConditionTrue, after(10)).Ready(false, after(-4)),
			end: after(60), state: Verifying, reason: ReasonPodNotReady,
		},
		"not ready again, later": {
			pod: changedPod(newContainer()).Gated(corev1.ConditionTrue, after(10)).Ready(false, after(30)),
			end: after(90), state: Verifying, reason: ReasonPodNotReady,
		},
		"marked not ready, and the kubelet does not answer": {
			pod: drainedPod().Ready(true, builders.Start), end: after(70), state: Draining, reason: ReasonStillReady,
		},
		"an EndpointSlice keeps the pod": {
			pod: drainedPod(), services: []string{"web"}, end: after(72), state: Draining, reason: ReasonEndpointsReady,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revisions, pod := testRevisions(t), tc.pod.Build()
			facts := PodFacts{Pod: pod, From: revisions[RevisionOf(pod)], Services: tc.services}
			target := Target{Revision: *revisions["b"], Policy: inPlaceIfPossible, Deadline: deadline}

			step := Next(facts, target, tc.end.Add(-time.Second))
			g.Expect(step.State).To(Equal(tc.state))
			g.Expect(step.Reason).To(Equal(tc.reason))
			g.Expect(step.Until).To(BeTemporally("==", tc.end))
			g.Expect(step.LeadsToPatch).To(Equal(leadsToPatch(step)))

			step = Next(facts, target, tc.end)
			g.Expect(step.State).To(Equal(Stuck))
			g.Expect(step.LeadsToPatch).To(BeFalse())
			g.Expect(step.Reason).To(Equal(tc.reason))
			g.Expect(step.Message).To(HavePrefix("longer than 1m0s: "))
			g.Expect(step.Action).To(Equal(Wait))

			target.Deadline = 0
			g.Expect(Next(facts, target, tc.end.Add(time.Hour)).State).To(Equal(tc.state), "no deadline")
		})
	}
}

// An image that cannot be pulled is told of, whatever the deadline: also while a new pod waits for it.
func TestNextTellsOfAnImageThatCannotBePulled(t *testing.T) {
	created := builders.Pod("sample-0", "b", latestImage).Gated(corev1.ConditionTrue, builders.Start).
		Ready(false, after(0)).Status(waitingContainer("", "ErrImagePull"))
	stoppedLate := failedPull()
	stoppedLate.LastTerminationState.Terminated.FinishedAt = metav1.NewTime(after(30))
	for name, tc := range map[string]struct {
		pod      *builders.PodBuilder
		deadline time.Duration
		end      int
		words    string
	}{
		"without a deadline":    {pod: changedPod(failedPull()), end: 45, words: "longer than 45s: "},
		"with a later deadline": {pod: changedPod(failedPull()), deadline: time.Minute, end: 45, words: "longer than 45s: "},
		"with an earlier one":   {pod: changedPod(failedPull()), deadline: 20 * time.Second, end: 20, words: "longer than 20s: "},
		"behind the back-off after several changes": {
			pod: changedPod(withReason(failedPull(), "CrashLoopBackOff")), end: 45, words: "longer than 45s: container main: the kubelet has started it several times",
		},
		"of a new pod":      {pod: created, end: 45, words: "longer than 45s: "},
		"after a long stop": {pod: changedPod(stoppedLate), deadline: 10 * time.Minute, end: 75, words: "longer than 45s: "},
		"of a new pod whose volumes came late": {
			pod: builders.Pod("sample-0", "b", latestImage).Gated(corev1.ConditionTrue, builders.Start).Ready(false, after(0)).
				Status(waitingContainer("", "ErrImagePull")).Condition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, after(30)),
			end: 75, words: "longer than 45s: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			revisions, pod := testRevisions(t), tc.pod.Build()
			facts, target := PodFacts{Pod: pod, From: revisions[RevisionOf(pod)]}, Target{Revision: *revisions["b"], Policy: inPlaceIfPossible, Deadline: tc.deadline}
			step := Next(facts, target, after(tc.end-1))
			g.Expect(step.State).NotTo(Equal(Stuck))
			g.Expect(step.Until).To(BeTemporally("==", after(tc.end)))
			step = Next(facts, target, after(tc.end))
			g.Expect(step).To(And(HaveField("State", Stuck), HaveField("Message", HavePrefix(tc.words)), HaveField("Action", Wait)))
		})
	}
}

func withReason(status corev1.ContainerStatus, reason string) corev1.ContainerStatus {
	status.State.Waiting.Reason = reason
	return status
}

// The settle time ends before the deadline: that is when to look again.
func TestNextDeadlineLeavesAnEarlierMoment(t *testing.T) {
	g := NewWithT(t)
	revisions := testRevisions(t)
	facts := PodFacts{Pod: changedPod(sameDigest("main-2", after(-1))).Build(), From: revisions["b"]}
	step := Next(facts, Target{Revision: *revisions["b"], Deadline: 10 * time.Minute}, after(20))
	g.Expect(step.Reason).To(Equal(ReasonSettling))
	g.Expect(step.Until).To(BeTemporally("==", after(45)))
}

// A container that ends a day after its update is not an update that has been
// stuck for a day: the deadline runs from the moment when the pod stopped being
// ready.
func TestNextDeadlineDoesNotCountTheTimeInService(t *testing.T) {
	g := NewWithT(t)
	const day = 24 * 60 * 60
	ended := newContainer()
	ended.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: 1, ContainerID: ended.ContainerID, StartedAt: metav1.NewTime(after(3)), FinishedAt: metav1.NewTime(after(day)),
	}}
	revisions := testRevisions(t)
	pod := changedPod(ended).Condition(appsv1beta1.InPlaceUpdateReady, corev1.ConditionTrue, after(4)).Ready(false, after(day)).Build()

	step := Next(PodFacts{Pod: pod, From: revisions["b"]}, Target{Revision: *revisions["b"], Deadline: time.Minute}, after(day+5))
	g.Expect(step.State).NotTo(Equal(Stuck), step.Message)
	g.Expect(step.Until).To(BeTemporally("==", after(day+60)))
}

// A pod that was created at a revision whose image does not exist says so.
func TestNextNamesTheContainerThatCannotStart(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("sample-0", "b", latestImage).Gated(corev1.ConditionTrue, builders.Start).
		Ready(false, patched).Status(waitingContainer("", "ImagePullBackOff")).Build()
	step := finishOf(observedOf(pod, patched), Target{}, patched)
	g.Expect(step).To(And(
		HaveField("State", Verifying), HaveField("Reason", "ImagePullBackOff"),
		HaveField("Message", "container main: told by the kubelet"),
	))
}
