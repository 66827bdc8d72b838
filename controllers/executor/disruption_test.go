// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// guard is an API server that is asked for evictions.
type guard struct {
	*WithT
	executor *Executor
	clock    *clocktesting.FakePassiveClock
	// asked are the evictions asked for: "dry run sample-0" or "sample-0".
	asked []string
	// err is what it answers, and meanwhile what happens before its next answer.
	err       error
	meanwhile func()
	plan      inplace.Plan
}

func newGuard(t *testing.T, action inplace.Action) *guard {
	t.Helper()
	guard := &guard{WithT: NewWithT(t), clock: clocktesting.NewFakePassiveClock(builders.Start.Add(time.Hour))}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
			options := (&client.SubResourceCreateOptions{}).ApplyOptions(opts)
			eviction, _ := sub.(*policyv1.Eviction)
			guard.Expect(*eviction.DeleteOptions.Preconditions.UID).To(BeEquivalentTo("uid-" + obj.GetName()))
			guard.Expect(*eviction.DeleteOptions.Preconditions.ResourceVersion).To(Equal("1"))
			if len(options.DryRun) > 0 {
				guard.asked = append(guard.asked, "dry run "+obj.GetName())
			} else {
				guard.asked = append(guard.asked, obj.GetName())
			}
			if meanwhile := guard.meanwhile; meanwhile != nil {
				guard.meanwhile = nil
				meanwhile()
			}
			return guard.err
		},
	}).Build()
	guard.executor = New(c, &rig{WithT: guard.WithT}, guard.clock)
	for i := range 3 {
		pod := podNumber(i)
		guard.plan.Pods = append(guard.plan.Pods, inplace.PodState{Pod: pod})
		guard.plan.Moves = append(guard.plan.Moves, inplace.Move{Pod: pod, Step: inplace.Step{Action: action}, Evict: true})
	}
	return guard
}

// ask returns the names of the pods that may move, and what the others wait for.
func (g *guard) ask() (moves []string, why string) {
	g.asked = nil
	left := g.executor.askBudgets(context.Background(), g.plan, g.clock.Now())
	for _, move := range left.Moves {
		moves = append(moves, move.Pod.Name)
	}
	g.Expect(len(left.Moves)+len(left.Blockers)).To(Equal(len(g.plan.Moves)), "no pod is forgotten")
	for _, b := range left.Blockers {
		g.Expect(b.Reason).To(Equal(inplace.ReasonDisruptionBudget))
		why = b.Message
	}
	return moves, why
}

func TestBudgetsAreAskedForOnePodAtATime(t *testing.T) {
	g := newGuard(t, inplace.MarkNotReady)
	moves, why := g.ask()
	g.Expect(moves).To(Equal([]string{"sample-0"}))
	g.Expect(g.asked).To(Equal([]string{"dry run sample-0"}))
	g.Expect(why).To(ContainSubstring("pod sample-0 goes before"))

	// The pod is marked, and the kubelet has not said that it is not ready: its
	// budget counts it as healthy.
	g.plan.Pods[0].Pod = builders.Pod("sample-0", "a", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).Build()
	g.plan.Moves = g.plan.Moves[1:]
	g.clock.SetTime(g.clock.Now().Add(time.Minute))
	moves, why = g.ask()
	g.Expect(moves).To(BeEmpty())
	g.Expect(g.asked).To(BeEmpty())
	g.Expect(why).To(ContainSubstring("sample-0 was taken out of service, and is not reported not ready yet"))

	g.plan.Pods[0].Pod = builders.Pod("sample-0", "a", "nginx:alpine").Gated(corev1.ConditionFalse, builders.Start).Ready(false, builders.Start).Build()
	moves, _ = g.ask()
	g.Expect(moves).To(Equal([]string{"sample-1"}))
}

func TestBudgetsHaveTimeToCount(t *testing.T) {
	g := newGuard(t, inplace.MarkNotReady)
	g.ask()
	other := newGuard(t, inplace.MarkNotReady) // another workload of the namespace
	other.executor = g.executor
	moves, why := other.ask()
	g.Expect(moves).To(BeEmpty())
	g.Expect(why).To(ContainSubstring("to be counted first"))
	g.Expect(other.executor.askBudgets(t.Context(), other.plan, g.clock.Now()).Recheck).To(Equal(g.clock.Now().Add(countingPause)))

	elsewhere := newGuard(t, inplace.MarkNotReady)
	elsewhere.executor = g.executor
	for _, move := range elsewhere.plan.Moves {
		move.Pod.Namespace = "elsewhere"
	}
	moves, _ = elsewhere.ask()
	g.Expect(moves).To(Equal([]string{"sample-0"}))

	g.clock.SetTime(g.clock.Now().Add(countingPause))
	moves, _ = g.ask()
	g.Expect(moves).To(Equal([]string{"sample-0"}))
}

// A budget may protect pods of a StatefulSet and of a Deployment, which have an executor each: a
// dry run of an eviction takes nothing off the budget, so both would be allowed.
func TestKindsShareTheirTurns(t *testing.T) {
	g, other := newGuard(t, inplace.MarkNotReady), newGuard(t, inplace.MarkNotReady)
	other.executor.Turns = g.executor.Turns
	moves, _ := g.ask()
	g.Expect(moves).To(Equal([]string{"sample-0"}))
	moves, why := other.ask()
	g.Expect(moves).To(BeEmpty())
	g.Expect(why).To(ContainSubstring("to be counted first"))
	g.Expect(other.asked).To(BeEmpty())
}

// While a server does not answer about a pod of one namespace, no other namespace waits, and
// no other workload of the namespace asks.
func TestTurnsAreOfANamespace(t *testing.T) {
	g := NewWithT(t)
	turns, now := NewTurns(), builders.Start
	take := func(namespace string, now time.Time) time.Time {
		again, why := turns.take(namespace, now)
		if again.IsZero() {
			g.Expect(why).To(BeEmpty())
		} else {
			g.Expect(why).NotTo(BeEmpty())
		}
		return again
	}
	g.Expect(take("shop", now)).To(BeZero())
	g.Expect(take("bank", now)).To(BeZero())
	g.Expect(take("shop", now)).To(Equal(now.Add(turnPause)))

	turns.handBack("shop", false, now)
	g.Expect(take("shop", now)).To(BeZero(), "no pod was given up")
	turns.handBack("shop", true, now)
	g.Expect(take("shop", now.Add(countingPause-1))).To(Equal(now.Add(countingPause)))
	g.Expect(take("shop", now.Add(countingPause))).To(BeZero())
}

// The server answers after longer than it takes to count a pod: the pause begins with its answer.
// Nothing is locked meanwhile.
func TestALateAnswerBeginsThePause(t *testing.T) {
	g, other, elsewhere := newGuard(t, inplace.MarkNotReady), newGuard(t, inplace.MarkNotReady), newGuard(t, inplace.MarkNotReady)
	other.executor.Turns, elsewhere.executor.Turns = g.executor.Turns, g.executor.Turns
	for _, move := range elsewhere.plan.Moves {
		move.Pod.Namespace = "elsewhere"
	}
	g.meanwhile = func() {
		g.clock.SetTime(g.clock.Now().Add(6 * time.Second))
		other.clock.SetTime(g.clock.Now())
		moves, why := other.ask()
		g.Expect(moves).To(BeEmpty())
		g.Expect(why).To(ContainSubstring("asks for an eviction now"))
		moves, _ = elsewhere.ask()
		g.Expect(moves).To(Equal([]string{"sample-0"}))
	}
	moves, _ := g.ask()
	g.Expect(moves).To(Equal([]string{"sample-0"}))
	other.clock.SetTime(other.clock.Now().Add(time.Second))
	moves, why := other.ask()
	g.Expect(moves).To(BeEmpty())
	g.Expect(why).To(ContainSubstring("to be counted first"))
}

func TestARefusedEvictionIsExplained(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"by a budget":    {tooMany("The disruption budget quorum needs 3 healthy pods and has 3 currently"), "The disruption budget quorum needs 3 healthy pods"},
		"by two budgets": {apierrors.NewInternalError(errors.New("this pod has more than one PodDisruptionBudget")), "more than one PodDisruptionBudget"},
		"by no budget":   {fmt.Errorf("dial: %w", context.DeadlineExceeded), "deadline exceeded"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t, inplace.MarkNotReady)
			g.err = tc.err
			moves, why := g.ask()
			g.Expect(moves).To(BeEmpty())
			g.Expect(why).To(ContainSubstring(tc.want))
			g.Expect(g.executor.askBudgets(t.Context(), g.plan, g.clock.Now()).Recheck).To(Equal(g.clock.Now().Add(budgetPeriod)))
		})
	}
}

func tooMany(cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: cause}}
	return err
}

func TestMovesThatTakeNothingAreNotAskedFor(t *testing.T) {
	g := newGuard(t, inplace.MarkReady)
	for i := range g.plan.Moves {
		g.plan.Moves[i].Evict = false
	}
	moves, _ := g.ask()
	g.Expect(moves).To(HaveLen(3))
	g.Expect(g.asked).To(BeEmpty())
}

func TestRecreationsAreEvictions(t *testing.T) {
	g := newGuard(t, inplace.Recreate)
	result := g.executor.Run(t.Context(), builders.StatefulSet("default", "sample", "a").Build(), "b", g.plan.Moves[:1])
	g.Expect(result.Failed).To(BeEmpty())
	g.Expect(g.asked).To(Equal([]string{"sample-0"}))
}

func planOf(pods ...*builders.PodBuilder) inplace.Plan {
	plan := inplace.Plan{}
	for _, pod := range pods {
		plan.Pods = append(plan.Pods, inplace.PodState{Pod: pod.Build()})
	}
	return plan
}

// A pod that was changed in service counts as healthy until the kubelet acts.
func TestUncounted(t *testing.T) {
	g := NewWithT(t)
	now := builders.Start.Add(time.Minute)
	changed := builders.Pod("sample-0", "b", "nginx:alpine").Generation(2, 1).Record(appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(now),
		LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{"main": {ContainerID: "containerd://main-1", Image: "nginx:latest"}},
	})
	g.Expect(uncounted(planOf(builders.Pod("sample-1", "b", "nginx:alpine"), changed), now)).To(Equal("sample-0"))
	g.Expect(uncounted(planOf(builders.Pod("sample-1", "b", "nginx:alpine"), changed.Ready(false, now)), now)).To(BeEmpty())

	between := builders.Pod("sample-0", "b", "nginx:alpine").Record(appsv1beta1.InPlaceUpdateState{
		Revision: "b", UpdateTimestamp: metav1.NewTime(now), NextContainerImages: map[string]string{"main": "nginx:latest"},
	})
	g.Expect(uncounted(planOf(between), now)).To(BeEmpty(), "it serves between two batches, and does not wait for its kubelet")

	drained := planOf(builders.Pod("sample-0", "a", "nginx:latest").Label(appsv1beta1.DrainedLabel, appsv1beta1.DrainedForUpdate))
	g.Expect(uncounted(drained, now)).To(Equal("sample-0"))
	drained.Pods[0].Undrained = true
	g.Expect(uncounted(drained, now)).To(BeEmpty(), "the API server does not heed the label: it will never be out of service")
}

// The controller of the budgets is given its time from when the kubelet reported a
// pod not ready, which can be long after it was taken out of service.
func TestCountedAt(t *testing.T) {
	g := NewWithT(t)
	now := builders.Start.Add(time.Minute)
	pod := func() *builders.PodBuilder { return builders.Pod("sample-0", "b", "nginx:alpine") }
	g.Expect(countedAt(planOf(pod()), now)).To(BeZero())
	g.Expect(countedAt(planOf(pod(), pod().Ready(false, now.Add(-time.Second)), pod().Ready(false, now.Add(-time.Hour))), now)).
		To(BeTemporally("==", now.Add(4*time.Second)))
	g.Expect(countedAt(planOf(pod().Condition(corev1.PodReady, corev1.ConditionFalse, now.Add(time.Hour))), now)).To(BeZero(), "a clock that is wrong")
}
