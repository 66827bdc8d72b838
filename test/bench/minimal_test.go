// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

var podsResource = corev1.SchemeGroupVersion.WithResource("pods")

// actAsKubelet brings the status of pods up to date for as long as the test runs.
func actAsKubelet(t *testing.T, kube *fake.Clientset) {
	t.Helper()
	watch, err := kube.Tracker().Watch(podsResource, namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(watch.Stop)
	go func() {
		for event := range watch.ResultChan() {
			pod := event.Object.(*corev1.Pod).DeepCopy()
			image := pod.Spec.Containers[0].Image
			served := readyFor(pod)
			status := builders.RunningContainer("main", image, image, noon)
			status.Resources = &pod.Spec.Containers[0].Resources
			if podutils.IsPodReady(pod) == served && equality.Semantic.DeepEqual(pod.Status.ContainerStatuses[0], status) {
				continue
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
			for i := range pod.Status.Conditions {
				if pod.Status.Conditions[i].Type == corev1.PodReady {
					pod.Status.Conditions[i].Status = map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[served]
				}
			}
			_ = kube.Tracker().Update(podsResource, pod, namespace)
		}
	}()
}

// readyFor reads the readiness gate.
func readyFor(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == appsv1beta1.InPlaceUpdateReady && c.Status == corev1.ConditionTrue
	})
}

func TestMinimalClientTakesPodsOutOfServiceWithinItsBudget(t *testing.T) {
	for budget, pods := range map[int]int{2: 7, 7: 7} {
		t.Run(fmt.Sprintf("%d of %d", budget, pods), func(t *testing.T) {
			g := NewWithT(t)
			run := runMinimal(t, newImage(image(1)), budget, pods, func(pod *corev1.Pod) bool {
				return podutils.IsPodReady(pod) && readyFor(pod)
			})
			g.Expect(run.most).To(BeNumerically("<=", budget))
			g.Expect(run.writes).To(HaveLen(pods))
			g.Expect(run.writes).To(HaveEach(Equal([]string{"status", "", "status"})))
			for _, pod := range run.pods(g) {
				g.Expect(pod.Spec.Containers[0].Image).To(Equal(image(1)))
				g.Expect(podutils.IsPodReady(pod)).To(BeTrue())
			}
		})
	}
}

func TestMinimalClientResizesPodsWithinItsBudget(t *testing.T) {
	for budget, pods := range map[int]int{2: 7, 7: 7} {
		t.Run(fmt.Sprintf("%d of %d", budget, pods), func(t *testing.T) {
			g := NewWithT(t)
			run := runMinimal(t, newSize(cpu(1)), budget, pods, func(pod *corev1.Pod) bool {
				spec, status := pod.Spec.Containers[0], pod.Status.ContainerStatuses[0]
				return status.Resources == nil || status.Resources.Requests.Cpu().Equal(*spec.Resources.Requests.Cpu())
			})
			g.Expect(run.most).To(BeNumerically("<=", budget))
			g.Expect(run.writes).To(HaveLen(pods))
			g.Expect(run.writes).To(HaveEach(Equal([]string{"resize", ""})))
			// The label may go over what the kubelet has just written: a fake server
			// has no versions.
			wanted := corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu(1)}}
			g.Eventually(func() []*corev1.Pod { return run.pods(g) }).Should(HaveEach(
				HaveField("Status.ContainerStatuses", HaveEach(HaveField("Resources", HaveValue(BeComparableTo(wanted)))))))
		})
	}
}

func TestAResizeIsNotDoneBeforeTheNodeHasFollowed(t *testing.T) {
	g := NewWithT(t)
	pod := builders.Pod("bench-0", "a", image(0)).Generation(2, 2).Build()
	pod.Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: cpu(1)}}
	g.Expect(resized(pod, 2, cpu(1))).To(BeTrue())
	g.Expect(resized(pod, 3, cpu(1))).To(BeFalse(), "not observed")
	g.Expect(resized(pod, 2, cpu(2))).To(BeFalse(), "of another size")
	for _, condition := range []corev1.PodConditionType{corev1.PodResizePending, corev1.PodResizeInProgress} {
		waiting := pod.DeepCopy()
		waiting.Status.Conditions = []corev1.PodCondition{{Type: condition, Status: corev1.ConditionTrue}}
		g.Expect(resized(waiting, 2, cpu(1))).To(BeFalse(), "%s", condition)
	}
}

// minimalRun is what the minimal client did.
type minimalRun struct {
	kube *fake.Clientset
	// writes are the subresources written to by pod, most is how many pods were
	// under way at a time.
	writes map[string][]string
	most   int
}

// runMinimal lets the minimal client make steps with pods. A pod that is not
// settled, or is written to, is under way.
func runMinimal(t *testing.T, steps steps, budget, pods int, settled func(*corev1.Pod) bool) *minimalRun {
	t.Helper()
	g := NewWithT(t)
	var objects []runtime.Object
	for i := range pods {
		objects = append(objects, builders.Pod(fmt.Sprintf("bench-%d", i), "a", image(0)).Label("app", workloadName).Gated("True", noon).Build())
	}
	run := &minimalRun{kube: fake.NewClientset(objects...), writes: map[string][]string{}}
	run.kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.PatchAction).GetName()
		run.writes[name] = append(run.writes[name], action.GetSubresource())
		underWay := 0
		for _, pod := range run.pods(g) {
			if pod.Name == name || !settled(pod) {
				underWay++
			}
		}
		run.most = max(run.most, underWay)
		return false, nil, nil
	})
	actAsKubelet(t, run.kube)
	m, err := newMinimal(t.Context(), run.kube, steps)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(m.update(t.Context(), budget)).To(Succeed())
	return run
}

func (r *minimalRun) pods(g *WithT) []*corev1.Pod {
	list, err := r.kube.Tracker().List(podsResource, corev1.SchemeGroupVersion.WithKind("Pod"), namespace)
	g.Expect(err).NotTo(HaveOccurred())
	var pods []*corev1.Pod
	for i := range list.(*corev1.PodList).Items {
		pods = append(pods, &list.(*corev1.PodList).Items[i])
	}
	return pods
}
