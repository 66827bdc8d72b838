// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/test/builders"
)

// newSizes has pods of one size at revision a, which b makes larger. Requests to
// pods/resize are told as "resize sample-1" and "try to resize sample-1".
func newSizes(t *testing.T, replicas int) *admission {
	t.Helper()
	a := &admission{
		WithT: NewWithT(t), clock: clocktesting.NewFakeClock(builders.Start.Add(time.Hour)), bodies: map[string]string{},
		recorder: newRig(t), says: func(string) error { return nil },
	}
	answer := func(request string, obj client.Object, patch client.Patch) error {
		raw, err := patch.Data(obj)
		a.requests, a.bodies[request] = append(a.requests, request), string(raw)
		obj.SetResourceVersion("8")
		return errors.Join(err, a.says(request))
	}
	c := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(_ context.Context, _ client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if len((&client.PatchOptions{}).ApplyOptions(opts).DryRun) > 0 {
				return answer("try "+obj.GetName(), obj, patch)
			}
			return answer("write "+obj.GetName(), obj, patch)
		},
		Create: func(_ context.Context, _ client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			options := (&client.CreateOptions{}).ApplyOptions(opts)
			request := fmt.Sprintf("create %s%v", obj.GetGenerateName(), options.DryRun)
			raw, err := json.Marshal(obj)
			a.requests, a.bodies[request] = append(a.requests, request), string(raw)
			if pod, ok := obj.(*corev1.Pod); ok && a.stores != nil {
				a.stores(pod)
			}
			return errors.Join(err, a.says(request))
		},
		SubResourcePatch: func(_ context.Context, _ client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			options := client.SubResourcePatchOptions{}
			options.ApplyOptions(opts)
			if name != "resize" || options.FieldManager != resize.FieldManager {
				return fmt.Errorf("%s by %q", name, options.FieldManager)
			}
			if len(options.DryRun) > 0 {
				return answer("try to resize "+obj.GetName(), obj, patch)
			}
			return answer("resize "+obj.GetName(), obj, patch)
		},
	}).Build()
	a.executor = New(c, a.recorder, a.clock)
	a.executor.Parallelism = 1
	from := &inplace.Revision{Name: "a", Template: sizedTemplate(a, "nginx:alpine", "100m")}
	a.workload = inplace.Workload{
		Target: inplace.Target{
			Revision: inplace.Revision{Name: "b", Template: sizedTemplate(a, "nginx:alpine", "200m")},
			Policy:   appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
		},
		Replicas: replicas, MaxUnavailable: 1, MaxConcurrentResizes: replicas,
	}
	for i := range replicas {
		pod := builders.Pod(fmt.Sprintf("sample-%d", i), "a", "nginx:alpine").Gated(corev1.ConditionTrue, builders.Start).Sized("100m", "64Mi").
			With(func(pod *corev1.Pod) { pod.Spec.NodeName = fmt.Sprintf("node-%d", i) }).Build()
		a.workload.Pods = append(a.workload.Pods, inplace.PodFacts{Pod: pod, From: from})
	}
	return a
}

func sizedTemplate(a *admission, image, cpu string) *inplace.Template {
	parsed, err := inplace.ParseTemplate([]byte(fmt.Sprintf(`{"spec":{"containers":[{"name":"main","image":%q,
		"resources":{"requests":{"cpu":%q,"memory":"64Mi"},"limits":{"memory":"64Mi"}}}]}}`, image, cpu)))
	a.Expect(err).NotTo(HaveOccurred())
	return parsed
}

// beyondNode is what the API server says of a size that the node of a pod cannot
// have, since Kubernetes 1.36.
func beyondNode() error {
	err := apierrors.NewForbidden(corev1.Resource("pods"), "sample", errors.New("node didn't have enough allocatable resources: cpu, requested: 99000, allocatable: 2000"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: "NodeCapacity"})
	return err
}

func TestAPureResizeIsTwoWrites(t *testing.T) {
	a := newSizes(t, 2)
	a.Expect(a.run().Errors()).To(BeEmpty())
	a.Expect(a.requests).To(Equal([]string{"resize sample-0", "write sample-0", "resize sample-1", "write sample-1"}))
	a.Expect(a.bodies["resize sample-0"]).To(MatchJSON(`{"metadata":{"uid":"uid-sample-0","resourceVersion":"1"},
		"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"200m"}}}]}}`), "nothing but what changes")

	label := corev1.Pod{}
	a.Expect(json.Unmarshal([]byte(a.bodies["write sample-0"]), &label)).To(Succeed())
	a.Expect(label.ResourceVersion).To(Equal("8"), "only what the resize has made of the pod gets the label")
	a.Expect(label.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, "b"))
	a.Expect(label.Spec).To(BeZero())
}

func TestSizesAreToldWhenTheKubeletReportsThemBeforeTheLabelIsWritten(t *testing.T) {
	a := newSizes(t, 1)
	a.says = refuses("write sample-0", apierrors.NewConflict(corev1.Resource("pods"), "sample-0", errors.New("modified")))
	a.Expect(a.run().Conflicts).To(Equal(1))
	a.Expect(a.recorder.events).To(HaveLen(2), "on the pod and on the workload")
	a.Expect(a.recorder.events).To(HaveEach(ContainSubstring("Normal ResizingPodInPlace")))

	none := newSizes(t, 1)
	none.says = refuses("resize sample-0", apierrors.NewConflict(corev1.Resource("pods"), "sample-0", errors.New("modified")))
	none.Expect(none.run().Conflicts).To(Equal(1))
	none.Expect(none.recorder.events).To(BeEmpty())
}

func TestAResizeIsTriedOnceForAllPods(t *testing.T) {
	a := newSizes(t, 3)
	moves, _, _ := a.plan()
	a.Expect(moves).To(ConsistOf("Resize sample-0", "Resize sample-1", "Resize sample-2"))
	a.Expect(a.requests).To(Equal([]string{"try to resize sample-0", "try sample-0"}))
	a.plan()
	a.Expect(a.requests).To(BeEmpty())
}

func TestNothingIsWrittenWhenTheLabelWouldBeRefused(t *testing.T) {
	a := newSizes(t, 3)
	a.says = refuses("try sample", forbidden("no labels today"))
	moves, plan, _ := a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonAdmissionDenied))))
}

func TestAResizeThatIsRefusedIsToldInTheWordsOfTheServer(t *testing.T) {
	a := newSizes(t, 4)
	a.says = refuses("try to resize", forbidden("exceeded quota: q"))
	moves, plan, _ := a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(a.requests).To(Equal([]string{"try to resize sample-0", "try to resize sample-1"}), "two speak for all")
	a.Expect(plan.Blockers).To(HaveLen(4))
	a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonResizeDenied), HaveField("Denied", true),
		HaveField("Message", ContainSubstring("the API server refuses to resize pod sample-")),
		HaveField("Message", ContainSubstring("exceeded quota: q; the pod keeps its old size")))))
	a.Expect(a.recorder.events).To(HaveLen(4), "for two pods, on the pod and on the workload")
	a.Expect(a.recorder.events).To(HaveEach(ContainSubstring("Warning ResizeDenied")))
}

func TestANodeThatIsTooSmallSpeaksForItsPodsOnly(t *testing.T) {
	a := newSizes(t, 3)
	a.workload.Pods[1].Pod.Spec.NodeName = "node-0"
	a.says = refuses("try to resize sample-0", beyondNode())
	moves, plan, _ := a.plan()
	a.Expect(moves).To(Equal([]string{"Resize sample-2"}), "it is on a larger node")
	a.Expect(plan.Blockers).To(ConsistOf(
		And(HaveField("Pod.Name", "sample-0"), HaveField("Reason", inplace.ReasonResizeInfeasible)),
		And(HaveField("Pod.Name", "sample-1"), HaveField("Reason", inplace.ReasonResizeInfeasible))))
	a.Expect(a.requests).NotTo(ContainElement("try to resize sample-1"), "it is on the same node")

	a.says = refuses("try to resize", beyondNode())
	for _, tc := range []struct {
		after time.Duration
		asked bool
	}{{14 * time.Second, false}, {2 * time.Second, true}, {29 * time.Second, false}, {2 * time.Second, true}, {59 * time.Second, false}} {
		a.clock.Step(tc.after)
		a.plan()
		if tc.asked {
			a.Expect(a.requests).To(ConsistOf("try to resize sample-0"))
		} else {
			a.Expect(a.requests).To(BeEmpty(), "less and less often")
		}
	}
	a.Expect(a.recorder.events).To(HaveLen(2), "what was told is not told again")
}

func TestManyNodesThatAreTooSmallSpeakForAll(t *testing.T) {
	a := newSizes(t, 50)
	a.says = refuses("try to resize", beyondNode())
	moves, plan, _ := a.plan()
	a.Expect(moves).To(BeEmpty())
	a.Expect(plan.Blockers).To(HaveLen(50))
	a.Expect(len(a.requests)).To(BeNumerically("<=", 51), "all at once after the first, and not in one pass for each")
	first := len(a.requests)
	a.clock.Step(16 * time.Second)
	a.plan()
	a.Expect(len(a.requests)).To(BeNumerically("<=", first))
}

func TestARefusedResizeRecreatesWhereThatIsWanted(t *testing.T) {
	a := newSizes(t, 3)
	a.workload.Target.Resize.OnInfeasible = appsv1beta1.RecreateResizeFailure
	a.says = refuses("try to resize", beyondNode())
	_, plan, _ := a.plan()
	for _, pod := range plan.Pods {
		a.Expect(pod.Step.Action).To(Equal(inplace.Recreate))
		a.Expect(pod.Step.Evict).To(BeTrue())
	}
}

// The quota still counts the pod that is to go, so it says nothing of one of the same size.
func TestAPodOfTheSameSizeHasRoomInTheQuota(t *testing.T) {
	a := newSizes(t, 1)
	a.says = refuses("create", forbidden("exceeded quota: q"))
	pod := builders.Pod("sample-0", "b", "nginx:alpine").Sized("200m", "64Mi").Build()

	_, err := a.executor.makeSuccessor(t.Context(), pod, a.workload.Target.Revision)
	a.Expect(err).NotTo(HaveOccurred())

	pod = builders.Pod("sample-0", "b", "nginx:alpine").Sized("200m", "32Mi").Build()
	_, err = a.executor.makeSuccessor(t.Context(), pod, a.workload.Target.Revision)
	a.Expect(err).To(HaveOccurred())
}

// A pod goes for its sizes only if another can come: a policy may refuse it as well.
func TestAPodThatCouldNotBeMadeAgainIsNotRecreated(t *testing.T) {
	const asked = "create sample-0-[All]"
	for name, tc := range map[string]struct {
		resize, create error
		recreated      bool
		asks           []any
		message        string
	}{
		"a new pod is accepted": {resize: forbidden("no more than 100m"), recreated: true, asks: []any{asked}},
		"a new pod is refused as well": {
			resize: forbidden("no more than 100m"), create: forbidden("maximum cpu usage per Pod is 100m"), asks: []any{asked},
			message: "the API server would not accept a new pod: pods \"sample\" is forbidden: maximum cpu usage per Pod is 100m",
		},
		"the quota is full": {
			resize: forbidden("exceeded quota: q"), message: "the API server would not accept a new pod: the quota has no room for it",
		},
		"the quota may have no room for a larger one": {
			resize: forbidden("no more than 100m"), create: forbidden("exceeded quota: q"), asks: []any{asked}, message: "exceeded quota: q",
		},
		"no webhook takes part in dry runs": {
			resize: forbidden("no more than 100m"), create: apierrors.NewBadRequest(`admission webhook "w" does not support dry run`),
			recreated: true, asks: []any{asked},
		},
		"no answer": {
			resize: forbidden("no more than 100m"), create: apierrors.NewServiceUnavailable("starting"), asks: []any{asked}, message: "starting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newSizes(t, 2)
			a.workload.MaxUnavailable = 2
			a.workload.Target.Resize.OnError = appsv1beta1.RecreateResizeFailure
			a.says = func(request string) error {
				switch {
				case strings.HasPrefix(request, "create"):
					return tc.create
				case strings.HasPrefix(request, "try to resize"):
					return tc.resize
				default:
					return nil
				}
			}

			recreated := HaveEach(HaveField("Step", And(HaveField("Action", inplace.Recreate), HaveField("Evict", true))))

			_, plan, _ := a.plan()

			a.Expect(slices.DeleteFunc(slices.Clone(a.requests), func(r string) bool { return !strings.HasPrefix(r, "create") })).
				To(ConsistOf(tc.asks), "once for all pods")
			if tc.recreated {
				a.Expect(plan.Pods).To(recreated)
				return
			}
			a.Expect(plan.Moves).To(BeEmpty())
			a.Expect(plan.Blockers).To(HaveLen(2))
			a.Expect(plan.Blockers).To(HaveEach(And(HaveField("State", inplace.Stuck), HaveField("Reason", inplace.ReasonResizeDenied),
				HaveField("Message", ContainSubstring(tc.message)))))
			a.Expect(plan.Recheck).NotTo(BeZero())

			tc.create, tc.resize = nil, forbidden("no more than 100m")
			a.clock.Step(refusalPeriod + time.Second)
			_, plan, _ = a.plan()
			a.Expect(plan.Pods).To(recreated, "as soon as it is accepted")
		})
	}
}
