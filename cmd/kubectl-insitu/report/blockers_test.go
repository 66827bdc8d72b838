// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// updating returns facts of a set that is being updated, with what the operator has
// reported and what the plan says.
func updating(reported []appsv1beta1.Blocker, planned ...inplace.Blocker) report.Facts {
	set := statefulSet(0, condition(appsv1beta1.ConditionReady, false, "Updating"), condition(appsv1beta1.ConditionStalled, false, "NotStalled"))
	set.Status.Blockers = reported
	facts := factsOf(statefulSetKind, set)
	facts.Inspection = workload.Inspection{Planned: true, Plan: inplace.Plan{Blockers: planned}}
	return facts
}

func reportedBlocker(pod, step, reason string, age time.Duration) appsv1beta1.Blocker {
	return appsv1beta1.Blocker{Pod: pod, Step: step, Reason: reason, Message: "reported", Since: metav1.NewTime(now.Add(-age))}
}

func plannedBlocker(pod string, state inplace.State, reason string) inplace.Blocker {
	return inplace.Blocker{Pod: builders.Pod(pod, "r1", "nginx:1").Build(), State: state, Reason: reason, Message: "planned", Since: now}
}

// said returns blockers as pod/reason: message.
func said(blockers []report.Blocker) []string {
	found := make([]string, 0, len(blockers))
	for _, b := range blockers {
		found = append(found, b.Pod+"/"+b.Reason+": "+b.Message)
	}
	return found
}

func TestWhatIsReportedComesFirstAndThePlanFillsIn(t *testing.T) {
	g := NewWithT(t)
	claim := plannedBlocker("db-2", inplace.Stuck, "ExpansionNotAllowed")
	claim.Claim = &corev1.PersistentVolumeClaim{}
	told := report.New(updating(
		[]appsv1beta1.Blocker{reportedBlocker("db-2", "Restarting", "ContainerCreating", time.Second), reportedBlocker("db-1", "Waiting", "MaxUnavailable", time.Second)},
		plannedBlocker("db-2", inplace.Restarting, "ContainerCreating"), // the same
		plannedBlocker("db-1", inplace.Draining, "StillReady"),          // db-1 has one already
		plannedBlocker("db-0", inplace.Waiting, "MaxUnavailable"),       // new
		claim, // of db-2, and of a claim: it does not take the place of what the pod waits for
	))
	g.Expect(said(told.Blockers)).To(Equal([]string{
		"db-2/ExpansionNotAllowed: planned",
		"db-2/ContainerCreating: reported",
		"db-1/MaxUnavailable: reported",
		"db-0/MaxUnavailable: planned",
	}))
	g.Expect(told.Blockers[3].Since.Time).To(BeTemporally("==", now))
	g.Expect(told.Blockers[3].Step).To(Equal("Waiting"))
	g.Expect(told.Phase).To(Equal(report.Stalled), "a claim needs help")
}

func TestBlockersOfTheSpecBeforeAreForgotten(t *testing.T) {
	g := NewWithT(t)
	facts := updating([]appsv1beta1.Blocker{reportedBlocker("db-2", "Stuck", "ResizeInfeasible", time.Minute)}, plannedBlocker("db-2", inplace.Waiting, "MaxUnavailable"))
	facts.Object.SetGeneration(6)
	told := report.New(facts)
	g.Expect(told.Phase).To(Equal(report.Unknown))
	g.Expect(said(told.Blockers)).To(ConsistOf(HavePrefix("db-2/MaxUnavailable"), HavePrefix("/NotObserved")))
}

func TestAContainerThatDoesNotStartNeedsHelpAfterAWhile(t *testing.T) {
	const patience = 2 * time.Minute
	for reason, isHelpless := range map[string]bool{
		"ErrImagePull": true, "ImagePullBackOff": true, "InvalidImageName": true, "ErrImageNeverPull": true, "ImageInspectError": true,
		"CrashLoopBackOff": true, "CreateContainerConfigError": true, "CreateContainerError": true, "RunContainerError": true,
		"ContainerCreating": false, "MaxUnavailable": false, "DisruptionBudget": false,
	} {
		t.Run(reason, func(t *testing.T) {
			g := NewWithT(t)
			early := report.New(updating([]appsv1beta1.Blocker{reportedBlocker("db-2", "Restarting", reason, patience-time.Second)}))
			g.Expect(early.Phase).To(Equal(report.Progressing))
			g.Expect(early.Blockers[0].NeedsHelp).To(BeFalse())

			late := report.New(updating([]appsv1beta1.Blocker{reportedBlocker("db-2", "Restarting", reason, patience)}))
			g.Expect(late.Blockers[0].NeedsHelp).To(Equal(isHelpless))
			if isHelpless {
				g.Expect(late.Phase).To(Equal(report.Stalled))
				g.Expect(late.Reason).To(Equal(reason))
				g.Expect(late.Message).To(Equal("pod db-2: reported"))
			} else {
				g.Expect(late.Phase).To(Equal(report.Progressing))
			}

			unknown := report.New(updating([]appsv1beta1.Blocker{{Pod: "db-2", Step: "Restarting", Reason: reason}}))
			g.Expect(unknown.Blockers[0].NeedsHelp).To(BeFalse(), "it is not known since when")
		})
	}
}

func TestAStuckPodNeedsHelpAtOnce(t *testing.T) {
	g := NewWithT(t)
	told := report.New(updating([]appsv1beta1.Blocker{reportedBlocker("db-1", "Waiting", "MaxUnavailable", 0), reportedBlocker("db-2", "Stuck", "ResizeInfeasible", 0)}))
	g.Expect(said(told.Blockers)).To(Equal([]string{"db-2/ResizeInfeasible: reported", "db-1/MaxUnavailable: reported"}))
	g.Expect(told.Blockers[0].NeedsHelp).To(BeTrue())
	g.Expect(told.Phase).To(Equal(report.Stalled))
}

func TestEveryBlockerHasAdvice(t *testing.T) {
	g := NewWithT(t)
	told := report.New(updating([]appsv1beta1.Blocker{reportedBlocker("db-2", "Restarting", "UnknownReason", 0)}, plannedBlocker("db-1", inplace.Waiting, "MaxUnavailable")))
	g.Expect(told.Blockers).To(HaveLen(2))
	for _, b := range told.Blockers {
		g.Expect(b.Advice).NotTo(BeEmpty())
	}
}

func TestAPauseIsABlockerSinceItsCondition(t *testing.T) {
	g := NewWithT(t)
	told := report.New(factsOf(statefulSetKind, statefulSet(0, condition(appsv1beta1.ConditionReady, false, "Paused"))))
	g.Expect(told.Blockers).To(HaveLen(1))
	g.Expect(told.Blockers[0]).To(HaveField("Reason", "Paused"))
	g.Expect(told.Blockers[0].Since.Time).To(BeTemporally("==", now))
	g.Expect(told.Blockers[0].NeedsHelp).To(BeFalse())
}

func TestAStallThatABlockerNamesIsToldOnce(t *testing.T) {
	g := NewWithT(t)
	facts := updating([]appsv1beta1.Blocker{reportedBlocker("db-2", "Stuck", "ResizeInfeasible", 0)})
	facts.Object.(*appsv1beta1.StatefulSet).Status.Conditions[1] = condition(appsv1beta1.ConditionStalled, true, "ResizeInfeasible")
	g.Expect(said(report.New(facts).Blockers)).To(Equal([]string{"db-2/ResizeInfeasible: reported"}))
}

// What the plugin could not read says nothing of the operator.
func TestAPartialPlanBlocksNothing(t *testing.T) {
	g := NewWithT(t)
	facts := updating(nil, plannedBlocker("db-1", inplace.UpdatingClaims, "ClaimRecreating"), plannedBlocker("db-0", inplace.Waiting, "MaxUnavailable"))

	g.Expect(said(report.New(facts).Blockers)).To(HaveLen(2))
	facts.Partial = true
	g.Expect(said(report.New(facts).Blockers)).To(Equal([]string{"db-0/MaxUnavailable: planned"}))
}

// Pods that Kubernetes recreates say themselves what they wait for.
func TestPodsThatKubernetesRecreates(t *testing.T) {
	g := NewWithT(t)
	facts := factsOf(deploymentKind, deployment(1, 0, 0))
	facts.Inspection = workload.Inspection{}
	waiting := builders.Pod("web-1", "", "nginx:no").Ready(false, now).Status(corev1.ContainerStatus{
		Name: "main", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "not found"}},
	}).Build()
	waiting.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	unplaced := builders.Pod("web-2", "", "nginx:1").Ready(false, now).Condition(corev1.PodScheduled, corev1.ConditionFalse, now).Build()
	for i := range unplaced.Status.Conditions {
		if c := &unplaced.Status.Conditions[i]; c.Type == corev1.PodScheduled {
			c.Reason, c.Message = "Unschedulable", "no node has room"
		}
	}
	ended := builders.Pod("web-3", "", "nginx:1").Ready(false, now).With(func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }).Build()
	facts.Pods = []*corev1.Pod{waiting, unplaced, ended}

	told := report.New(facts)

	g.Expect(said(told.Blockers)).To(ConsistOf("web-1/ErrImagePull: container main: not found", "web-2/Unschedulable: no node has room"))
	g.Expect(told.Phase).To(Equal(report.Progressing))
	g.Expect(told.Pods[2].State).To(Equal(report.Ended))

	facts.Now = now.Add(3 * time.Minute)
	g.Expect(report.New(facts).Phase).To(Equal(report.Stalled), "it does not end by itself")
}
