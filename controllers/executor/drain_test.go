// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// ungate takes the readiness gates of the pods away.
func (a *admission) ungate() {
	for i := range a.workload.Pods {
		a.workload.Pods[i].Pod = builders.Pod(a.workload.Pods[i].Pod.Name, "a", "nginx:alpine").Build()
	}
}

func newUngated(t *testing.T, replicas int) *admission {
	t.Helper()
	a := newAdmission(t, replicas)
	a.ungate()
	return a
}

func TestPlanTriesADrainOnce(t *testing.T) {
	a := newUngated(t, 2)
	moves, _, result := a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-1", "try to drain sample-1"}))
	a.Expect(a.bodies["try to drain sample-1"]).To(And(ContainSubstring(`"insitu.dev/drained":"update"`), ContainSubstring(`"status":"True"`)))
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-1", "MarkNotReady sample-0"}))
	a.Expect(result).To(Equal(Result{}))
	a.plan()
	a.Expect(a.requests).To(BeEmpty())
	a.clock.Step(refusalPeriod)
	a.plan()
	a.Expect(a.requests).To(Equal([]string{"try to drain sample-1"}), "the policy may be gone")
}

func TestPlanTriesNoDrainOfPodsThatHaveTheGate(t *testing.T) {
	a := newAdmission(t, 2)
	a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-1"}))
}

// What is not drained is restarted in service, and says so; it is asked for again later.
func TestPlanPlansAroundADrainThatIsNotHeeded(t *testing.T) {
	a := newUngated(t, 2)
	a.keeps = corev1.ConditionTrue
	moves, plan, result := a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-1", "try to drain sample-1"}))
	a.Expect(moves).To(Equal([]string{"Patch sample-1", "Patch sample-0"}))
	a.Expect(plan.Moves[0].Note).To(ContainSubstring("(not drained: the API server does not keep pods out of service in namespace default"))
	a.Expect(plan.CannotDrain).To(HaveField("Reason", inplace.ReasonCannotDrain))
	a.Expect(result).To(Equal(Result{}))

	a.clock.Step(14 * time.Second)
	a.plan()
	a.Expect(a.requests).To(BeEmpty())
	a.clock.Step(time.Second)
	a.keeps = corev1.ConditionFalse
	moves, _, _ = a.plan()
	a.Expect(a.requests).To(Equal([]string{"try to drain sample-1"}))
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-1", "MarkNotReady sample-0"}))
}

// A manager that has just begun asks twice: the policy has not seen its heartbeat yet.
func TestPlanAsksForADrainTwice(t *testing.T) {
	for name, tc := range map[string]struct {
		comes bool
		moves []string
	}{
		"the policy acts then":      {true, []string{"MarkNotReady sample-1", "MarkNotReady sample-0"}},
		"the policy does not, then": {false, []string{"Patch sample-1", "Patch sample-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newUngated(t, 2)
				a.executor.DrainPause, a.keeps = DrainPause, corev1.ConditionTrue
				if tc.comes {
					time.AfterFunc(DrainPause/2, func() { a.keep(corev1.ConditionFalse) })
				}
				moves, _, result := a.plan()
				a.Expect(a.requests).To(Equal([]string{"try sample-1", "try to drain sample-1", "try to drain sample-1"}))
				a.Expect(moves).To(Equal(tc.moves))
				a.Expect(result).To(Equal(Result{}))

				a.keeps = corev1.ConditionTrue
				a.clock.Step(refusalPeriod)
				a.plan()
				a.Expect(a.requests).To(Equal([]string{"try to drain sample-1"}), "once: each pause keeps a worker from others")
			})
		})
	}
}

// Pods of Kubernetes are not restarted then.
func TestPlanOfPodsThatMustBeDrained(t *testing.T) {
	a := newUngated(t, 2)
	a.workload.Target.MustDrain = true
	a.says = refuses("try to drain", forbidden("a policy forbids labels"))
	moves, plan, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-1", "Recreate sample-0"}))
	a.Expect(plan.Moves[0].Step).To(And(HaveField("Reason", inplace.ReasonCannotDrain),
		HaveField("Message", And(ContainSubstring("refuses label insitu.dev/drained of pod sample-1"), ContainSubstring("a policy forbids labels")))))

	a.workload.Target.Policy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	moves, plan, _ = a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonCannotDrain))))
	a.Expect(plan.Blockers).To(HaveLen(2))
	a.Expect(plan.Recheck.IsZero()).To(BeFalse(), "a policy may come")
}

// A server that does not answer has not judged.
func TestPlanWithoutAnAnswerDrainsNothing(t *testing.T) {
	a := newUngated(t, 2)
	a.workload.Target.MustDrain = true
	a.says = refuses("try to drain", apierrors.NewTooManyRequestsError("later"))
	moves, plan, result := a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(result.Failed).To(HaveKey("sample-1"))
	a.Expect(plan.Blockers).To(ConsistOf(And(HaveField("Pod.Name", "sample-0"), HaveField("Reason", inplace.ReasonAdmissionUnknown))))

	a.says = refuses("try to drain", apierrors.NewConflict(corev1.Resource("pods"), "sample-1", nil))
	moves, _, result = a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(result.Conflicts).To(Equal(1))
}

// The policy went in the middle of a drain: the pod is ready again.
func TestPlanAsksAgainWhenADrainedPodIsReady(t *testing.T) {
	a := newUngated(t, 1)
	a.plan()
	a.workload.Pods[0].Pod = builders.Pod("sample-0", "a", "nginx:alpine").Label(appsv1beta1.DrainedLabel, appsv1beta1.DrainedForUpdate).Build()
	moves, _, _ := a.plan()
	a.Expect(a.requests).To(Equal([]string{"try to drain sample-0"}))
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-0"}))

	a.keeps = corev1.ConditionTrue
	moves, _, _ = a.plan()
	a.Expect(a.requests).To(Equal([]string{"try to drain sample-0"}))
	a.Expect(moves).To(Equal([]string{"Patch sample-0"}))
}
