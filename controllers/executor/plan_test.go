// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// admission is an API server that only judges patches of pods.
type admission struct {
	*WithT
	executor *Executor
	clock    *clocktesting.FakeClock
	workload inplace.Workload
	recorder *rig
	// says is what it answers to a request: "try sample-1", "write sample-1".
	says func(request string) error
	// stores is what it makes of a pod.
	stores func(pod *corev1.Pod)
	// mu guards what follows: several requests are answered at a time.
	mu sync.Mutex
	// keeps is what the server makes of the condition Ready of a drained pod.
	keeps corev1.ConditionStatus
	// requests are those since the last look, and bodies what they said.
	requests []string
	bodies   map[string]string
}

// keep has the server make another thing of the condition Ready of a drained pod.
func (a *admission) keep(status corev1.ConditionStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keeps = status
}

func (a *admission) kept() corev1.ConditionStatus {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.keeps
}

// note notes a request.
func (a *admission) note(request string, body []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.requests, a.bodies[request] = append(a.requests, request), string(body)
}

// newAdmission has pods at revision a to be updated to b, the highest first.
func newAdmission(t testing.TB, replicas int) *admission {
	t.Helper()
	a := &admission{
		WithT: NewWithT(t), clock: clocktesting.NewFakeClock(builders.Start.Add(time.Hour)), bodies: map[string]string{},
		recorder: newRig(t), says: func(string) error { return nil }, keeps: corev1.ConditionFalse,
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			request := "write " + obj.GetName()
			if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
				request = "try " + obj.GetName()
			}
			raw, err := patch.Data(obj)
			a.note(request, raw)
			if pod, ok := obj.(*corev1.Pod); ok && a.stores != nil {
				a.stores(pod)
			}
			return errors.Join(err, a.says(request))
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, _ string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			pod, isPod := obj.(*corev1.Pod)
			if len((&client.SubResourcePatchOptions{}).ApplyOptions(opts).DryRun) == 0 || !isPod {
				return nil
			}
			request := "try to drain " + obj.GetName()
			raw, err := patch.Data(obj)
			a.note(request, raw)
			pod.UID, pod.Labels = "answered", map[string]string{appsv1beta1.DrainedLabel: appsv1beta1.DrainedForUpdate}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: a.kept()}}
			return errors.Join(err, a.says(request))
		},
	}).Build()
	a.executor = New(c, a.recorder, a.clock)
	template := func(image string) *inplace.Template {
		parsed, err := inplace.ParseTemplate([]byte(`{"spec":{"containers":[{"name":"main","image":"` + image + `"}]}}`))
		a.Expect(err).NotTo(HaveOccurred())
		return parsed
	}
	from := &inplace.Revision{Name: "a", Template: template("nginx:alpine")}
	a.workload = inplace.Workload{
		Target: inplace.Target{
			Revision: inplace.Revision{Name: "b", Template: template("nginx:latest")}, Policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
		},
		Replicas: replicas, MaxUnavailable: replicas,
	}
	for i := replicas - 1; i >= 0; i-- {
		pod := builders.Pod(fmt.Sprintf("sample-%d", i), "a", "nginx:alpine").Gated(corev1.ConditionTrue, builders.Start).Build()
		a.workload.Pods = append(a.workload.Pods, inplace.PodFacts{Pod: pod, From: from})
	}
	return a
}

// drain makes the pods out of service.
func (a *admission) drain() {
	for i := range a.workload.Pods {
		name := a.workload.Pods[i].Pod.Name
		a.workload.Pods[i].Pod = builders.Pod(name, "a", "nginx:alpine").
			Gated(corev1.ConditionFalse, builders.Start).Ready(false, builders.Start).Build()
	}
}

// plan makes a plan, and returns the moves that it leaves.
func (a *admission) plan() ([]string, inplace.Plan, Result) {
	a.requests = nil
	plan, result := a.executor.Plan(context.Background(), a.recorder.workload, a.workload, a.clock.Now())
	left := []string{}
	for _, move := range plan.Moves {
		left = append(left, fmt.Sprintf("%s %s", move.Step.Action, move.Pod.Name))
	}
	return left, plan, result
}

// run carries out what the plan leaves.
func (a *admission) run() Result {
	_, plan, _ := a.plan()
	a.requests = nil
	return a.executor.Run(context.Background(), a.recorder.workload, "b", plan.Moves)
}

func forbidden(words string) error {
	return apierrors.NewForbidden(corev1.Resource("pods"), "sample", errors.New(words))
}

// refuses answers requests that begin with a prefix.
func refuses(prefix string, err error) func(string) error {
	return func(request string) error {
		if strings.HasPrefix(request, prefix) {
			return err
		}
		return nil
	}
}

func TestPlanTriesAChangeOnceAndThenDrains(t *testing.T) {
	a := newAdmission(t, 3)
	moves, _, result := a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-2"}))
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-2", "MarkNotReady sample-1", "MarkNotReady sample-0"}))
	a.Expect(result).To(Equal(Result{}))
	a.plan()
	a.Expect(a.requests).To(BeEmpty())
}

// What is judged is what will be written.
func TestPlanTriesTheVeryPatch(t *testing.T) {
	a := newAdmission(t, 1)
	a.plan()
	a.drain()
	a.run()
	a.Expect(a.requests).To(Equal([]string{"write sample-0"}))
	a.Expect(a.bodies["try sample-0"]).To(And(Equal(a.bodies["write sample-0"]), ContainSubstring(`"image":"nginx:latest"`)))
}

func TestPlanPlansAroundWhatIsRefused(t *testing.T) {
	a := newAdmission(t, 4)
	a.says = refuses("try", forbidden("denied by a policy"))
	moves, plan, result := a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-3", "try sample-2"}), "two pods speak for all")
	a.Expect(moves).To(BeEmpty())
	a.Expect(result).To(Equal(Result{}), "the plan says it")
	a.Expect(plan.Blockers).To(HaveLen(4))
	for _, b := range plan.Blockers {
		a.Expect(b).To(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonAdmissionDenied),
			HaveField("Message", And(ContainSubstring("pod sample-"), ContainSubstring("denied by a policy")))))
	}
	a.Expect(plan.Recheck).To(Equal(a.clock.Now().Add(15 * time.Second)))
	for _, facts := range a.workload.Pods {
		a.Expect(facts.Refused).To(BeNil(), "the facts of the caller are not changed")
	}
	a.Expect(a.recorder.events).To(HaveLen(4))
	a.clock.Step(14 * time.Second)
	a.plan()
	a.Expect(a.requests).To(BeEmpty())
	a.clock.Step(time.Second)
	a.plan()
	a.Expect(a.requests).To(HaveLen(2))
	a.Expect(a.recorder.events).To(HaveLen(4), "told once")

	a.clock.Step(15 * time.Second)
	a.says = refuses("nothing", nil)
	moves, _, _ = a.plan()
	a.Expect(moves).To(ConsistOf("MarkNotReady sample-3", "MarkNotReady sample-2", "MarkNotReady sample-1", "MarkNotReady sample-0"))
	a.Expect(a.requests).To(Equal([]string{"try sample-3", "try sample-2"}), "each of them says so itself")
}

func TestPlanTakesOnePodForItself(t *testing.T) {
	a := newAdmission(t, 3)
	a.says = refuses("try sample-2", forbidden("denied for what it is"))
	for range 2 {
		moves, _, _ := a.plan()
		a.Expect(a.requests).To(HaveExactElements("try sample-2", "try sample-1"))
		a.Expect(moves).To(Equal([]string{"MarkNotReady sample-1", "MarkNotReady sample-0"}))
		a.clock.Step(15 * time.Second)
	}
}

// Two pods are refused for what they are. They do not speak for the others: the server
// has accepted the same change of another pod since.
func TestRefusedPodsDoNotSpeakForThoseThatAreAccepted(t *testing.T) {
	a := newAdmission(t, 4)
	a.plan()
	a.drain()
	a.says = func(request string) error {
		if request == "write sample-3" || request == "write sample-2" {
			return forbidden("denied for what it is")
		}
		return nil
	}
	a.Expect(a.run().Refused).To(Equal(2))
	moves, _, _ := a.plan()
	a.Expect(moves).To(ConsistOf("MarkReady sample-3", "MarkReady sample-2", "Patch sample-1", "Patch sample-0"))
}

func TestPlanAsksAgainForAnotherRevision(t *testing.T) {
	a := newAdmission(t, 1)
	a.says = refuses("try", forbidden("denied"))
	a.plan()
	a.workload.Target.Name = "c"
	a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-0"}))
	a.workload.Target.Name = "b"
	a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-0"}))
}

// What says nothing of the change: neither is the pod drained, nor is it refused.
func TestPlanWithoutAnAnswer(t *testing.T) {
	uidConflict := apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "sample-0", nil)
	uidConflict.ErrStatus.Details.Causes = []metav1.StatusCause{{Field: "metadata.uid"}}
	for name, tc := range map[string]struct {
		err       error
		conflicts int
	}{
		"conflict":        {apierrors.NewConflict(corev1.Resource("pods"), "sample-0", errors.New("modified")), 1},
		"not found":       {apierrors.NewNotFound(corev1.Resource("pods"), "sample-0"), 1},
		"another pod":     {uidConflict, 1},
		"overloaded":      {apierrors.NewTooManyRequests("busy", 1), 0},
		"unavailable":     {apierrors.NewServiceUnavailable("starting"), 0},
		"timeout":         {apierrors.NewServerTimeout(corev1.Resource("pods"), "patch", 1), 0},
		"internal error":  {apierrors.NewInternalError(errors.New("etcdserver: leader changed")), 0},
		"no connection":   {errors.New("connection refused"), 0},
		"context is over": {context.Canceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdmission(t, 2)
			a.says = refuses("try", tc.err)
			moves, plan, result := a.plan()
			a.Expect(a.requests).To(Equal([]string{"try sample-1"}))
			a.Expect(moves).To(BeEmpty())
			a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Waiting), HaveField("Reason", inplace.ReasonAdmissionUnknown))))
			a.Expect(len(plan.Blockers)+len(result.Failed)).To(Equal(2), "each is named once")
			a.Expect(result.Conflicts).To(Equal(tc.conflicts))
			a.Expect(result.Failed).To(HaveLen(1 - tc.conflicts))
			a.Expect(plan.Pods[0].Step.State).NotTo(Equal(inplace.Stuck))
			a.Expect(a.recorder.events).To(BeEmpty())
			a.says = refuses("nothing", nil)
			moves, _, _ = a.plan()
			a.Expect(moves).To(Equal([]string{"MarkNotReady sample-1", "MarkNotReady sample-0"}))
		})
	}
}

func TestPlanAfterTheContextEnded(t *testing.T) {
	a := newAdmission(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	plan, result := a.executor.Plan(ctx, a.recorder.workload, a.workload, a.clock.Now())
	a.Expect(plan.Moves).To(BeEmpty())
	a.Expect(result.Errors()).To(ConsistOf(MatchError(context.Canceled)))
}

func TestPlanTakesARefusalFromAnyWords(t *testing.T) {
	for name, err := range map[string]error{
		"forbidden":         forbidden("denied"),
		"invalid":           apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "sample-0", nil),
		"a webhook is down": apierrors.NewInternalError(errors.New("failed calling webhook")),
		"bad request":       apierrors.NewBadRequest(`admission webhook "w" denied the request: no`),
		"a code of its own": &apierrors.StatusError{ErrStatus: statusWithCode(418)},
		"a webhook is slow": apierrors.NewInternalError(fmt.Errorf("failed calling webhook: %w", context.DeadlineExceeded)),
	} {
		t.Run(name, func(t *testing.T) {
			a := newAdmission(t, 1)
			a.says = refuses("try", err)
			moves, plan, _ := a.plan()
			a.Expect(moves).To(BeEmpty())
			a.Expect(plan.Pods[0].Step.Reason).To(Equal(inplace.ReasonAdmissionDenied))
		})
	}
}

// The dry run shows that admission undoes what has a container restarted: no pod is drained.
func TestPlanSeesARestartThatAdmissionUndoes(t *testing.T) {
	reading := func(level string) *inplace.Template {
		template, err := inplace.ParseTemplate([]byte(`{"metadata":{"annotations":{"level":"` + level + `"}},"spec":{"containers":[{"name":"main","image":"nginx:alpine",
			"env":[{"name":"LEVEL","valueFrom":{"fieldRef":{"fieldPath":"metadata.annotations['level']"}}}]}]}}`))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return template
	}
	undoing := func(policy appsv1beta1.PodUpdateStrategyType) *admission {
		a := newAdmission(t, 2)
		a.workload.Target.Policy, a.workload.Target.Template = policy, reading("2")
		for i := range a.workload.Pods {
			a.workload.Pods[i].From = &inplace.Revision{Name: "a", Template: reading("1")}
			a.workload.Pods[i].Pod.Annotations = map[string]string{"level": "1"}
		}
		a.stores = func(pod *corev1.Pod) { pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "nginx:alpine"}} }
		return a
	}

	a := undoing(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	moves, plan, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-1", "Recreate sample-0"}))
	a.Expect(plan.Pods[0].Step.Reason).To(Equal(inplace.ReasonNotRestarted))
	a.Expect(plan.Pods[0].Step.Message).To(ContainSubstring("container main cannot be restarted in place: admission changes"))

	a = undoing(appsv1beta1.InPlaceOnlyPodUpdateStrategyType)
	moves, plan, _ = a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonNotRestarted))))

	// Pods that are out of service already would wait for a restart that never comes.
	a = undoing(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	a.drain()
	for i := range a.workload.Pods {
		a.workload.Pods[i].Pod.Annotations = map[string]string{"level": "1"}
	}
	moves, _, _ = a.plan()
	a.Expect(moves).To(Equal([]string{"Recreate sample-1", "Recreate sample-0"}))

	a = undoing(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)
	a.stores = func(pod *corev1.Pod) {
		pod.Spec.Containers = []corev1.Container{{Name: "main", Image: "docker.io/library/nginx:alpine"}}
	}
	moves, _, _ = a.plan()
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-1", "MarkNotReady sample-0"}))
}

func TestPlanProceedsWhereNoDryRunIsPossible(t *testing.T) {
	a := newAdmission(t, 1)
	a.says = refuses("try", apierrors.NewBadRequest(`admission webhook "w" does not support dry run`))
	moves, _, result := a.plan()
	a.Expect(moves).To(Equal([]string{"MarkNotReady sample-0"}))
	a.Expect(result).To(Equal(Result{}))
}

// A refused write puts the pod back. Where the dry run says otherwise, it is
// drained again less and less often.
func TestRefusedWritesAreLearned(t *testing.T) {
	a := newAdmission(t, 1)
	a.plan()
	a.drain()
	a.says = refuses("write", forbidden("denied"))
	for _, seconds := range []int{15, 30, 60, 120, 240, 480, 480} {
		period := time.Duration(seconds) * time.Second
		a.Expect(a.run().Refused).To(Equal(1))
		moves, _, _ := a.plan()
		a.Expect(moves).To(Equal([]string{"MarkReady sample-0"}))
		a.clock.Step(period - time.Second)
		moves, _, _ = a.plan()
		a.Expect(moves).To(Equal([]string{"MarkReady sample-0"}), "after %s", a.clock.Now())
		a.Expect(a.requests).To(BeEmpty())
		a.clock.Step(time.Second)
		moves, _, _ = a.plan()
		a.Expect(moves).To(Equal([]string{"Patch sample-0"}), "after %s", period)
	}
	a.says = refuses("nothing", nil)
	a.Expect(a.run().Refused).To(BeZero())
	a.says = refuses("write", forbidden("denied"))
	a.run()
	a.clock.Step(15 * time.Second)
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Patch sample-0"}), "a write that was accepted makes up for it")
}

// Several writes at a time are one surprise, and a policy that came in the middle
// is found by the next dry run.
func TestRefusedWritesOfManyPodsAreOneSurprise(t *testing.T) {
	a := newAdmission(t, 5)
	a.plan()
	a.drain()
	a.says = func(string) error { return forbidden("denied") }
	a.Expect(a.run().Refused).To(Equal(5))
	moves, _, _ := a.plan()
	a.Expect(moves).To(HaveLen(5))
	a.Expect(moves).To(HaveEach(HavePrefix("MarkReady")))
	a.Expect(a.requests).To(BeEmpty())
	a.clock.Step(15 * time.Second)
	moves, _, _ = a.plan()
	a.Expect(moves).To(HaveEach(HavePrefix("MarkReady")))
	a.Expect(a.requests).To(HaveLen(2))
	a.Expect(a.requests).To(HaveEach(HavePrefix("try")))
}

// The pods that were refused may be gone; the others are not written to unasked.
func TestAChangeThatWasRefusedIsTriedOnOtherPods(t *testing.T) {
	a := newAdmission(t, 5)
	a.drain()
	a.says = func(string) error { return forbidden("denied") }
	a.run()
	a.workload.Pods = a.workload.Pods[:2]
	a.clock.Step(15 * time.Second)
	a.plan()
	a.Expect(a.requests).To(Equal([]string{"try sample-4", "try sample-3"}))
}

// A write that says nothing of the change leaves the pod drained for the next one.
func TestFailedWritesAreNotRefused(t *testing.T) {
	a := newAdmission(t, 1)
	a.plan()
	a.drain()
	a.says = refuses("write", apierrors.NewServiceUnavailable("starting"))
	result := a.run()
	a.Expect(result.Refused).To(BeZero())
	a.Expect(result.Failed).To(HaveLen(1))
	moves, _, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Patch sample-0"}))
}

func TestLongRefusalsAreCut(t *testing.T) {
	a := newAdmission(t, 1)
	a.says = refuses("try", forbidden(strings.Repeat("no ", 10000)))
	_, plan, _ := a.plan()
	a.Expect(len(plan.Blockers[0].Message)).To(BeNumerically("<", 1024))
}

func TestTheMemoryIsBounded(t *testing.T) {
	g := NewWithT(t)
	m := newMemory()
	first := m.verdictsOn("0", "a")
	g.Expect(m.verdictsOn("0", "a")).To(BeIdenticalTo(first))
	for i := range rememberedWorkloads {
		m.verdictsOn(types.UID(fmt.Sprint(i+1)), "a")
	}
	g.Expect(m.workloads.Len()).To(Equal(rememberedWorkloads))
	g.Expect(m.verdictsOn("0", "a")).NotTo(BeIdenticalTo(first))
}

func TestResultsAddUp(t *testing.T) {
	g := NewWithT(t)
	one, other := errors.New("one"), errors.New("other")
	g.Expect(Result{Conflicts: 1, Refused: 2, Failed: map[string]error{"a": one}}.With(Result{Conflicts: 3, Refused: 4, Failed: map[string]error{"b": other}})).
		To(Equal(Result{Conflicts: 4, Refused: 6, Failed: map[string]error{"a": one, "b": other}}))
	g.Expect(Result{}.With(Result{})).To(Equal(Result{Failed: map[string]error{}}))
}

func statusWithCode(code int32) metav1.Status {
	return metav1.Status{Status: metav1.StatusFailure, Code: code, Message: "denied in a way of its own"}
}

// What a pod is to be changed to later is refused by a write: asking again would
// give the same answer, and the pod waits with it.
func TestARefusedSecondBatchIsAskedForOnce(t *testing.T) {
	a := newAdmission(t, 1)
	a.workload.Pods[0].Pod = builders.Pod("sample-0", "b", "nginx:latest").Record(appsv1beta1.InPlaceUpdateState{
		Revision: "b", NextContainerImages: map[string]string{"main": "nginx:latest"},
	}).Label(appsv1beta1.DrainedLabel, appsv1beta1.DrainedForUpdate).Ready(false, builders.Start).Build()
	a.says = refuses("", forbidden("ask the platform team"))
	a.Expect(a.run().Refused).To(Equal(1), "the write was the first try")
	for range 3 {
		a.clock.Step(time.Minute)
		left, plan, _ := a.plan()
		a.Expect(left).To(BeEmpty())
		a.Expect(a.requests).To(HaveLen(1))
		a.Expect(plan.Blockers).To(ConsistOf(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonAdmissionDenied))))
	}
}
