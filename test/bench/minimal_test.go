// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
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
			if podutils.IsPodReady(pod) == served && pod.Status.ContainerStatuses[0].Image == image {
				continue
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{builders.RunningContainer("main", image, image, noon)}
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

func TestMinimalClientWritesThreeTimesToEachPodWithinItsBudget(t *testing.T) {
	for budget, pods := range map[int]int{2: 7, 7: 7} {
		t.Run(fmt.Sprintf("%d of %d", budget, pods), func(t *testing.T) {
			g := NewWithT(t)
			var objects []runtime.Object
			for i := range pods {
				objects = append(objects, builders.Pod(fmt.Sprintf("bench-%d", i), "a", image(0)).Label("app", workloadName).Gated("True", noon).Build())
			}
			kube := fake.NewClientset(objects...)
			writes, most := map[string][]string{}, 0
			kube.PrependReactor("patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				name := action.(clienttesting.PatchAction).GetName()
				writes[name] = append(writes[name], action.GetSubresource())
				out := 0
				for _, object := range objects {
					live, err := kube.Tracker().Get(podsResource, namespace, object.(*corev1.Pod).Name)
					if pod := live.(*corev1.Pod); err == nil && (pod.Name == name || !podutils.IsPodReady(pod) || !readyFor(pod)) {
						out++
					}
				}
				most = max(most, out)
				return false, nil, nil
			})
			actAsKubelet(t, kube)
			m, err := newMinimal(t.Context(), kube)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(m.update(t.Context(), image(1), budget)).To(Succeed())

			g.Expect(most).To(BeNumerically("<=", budget))
			g.Expect(writes).To(HaveLen(pods))
			g.Expect(writes).To(HaveEach(Equal([]string{"status", "", "status"})))
			for _, object := range objects {
				live, err := kube.Tracker().Get(podsResource, namespace, object.(*corev1.Pod).Name)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(live.(*corev1.Pod).Spec.Containers[0].Image).To(Equal(image(1)))
				g.Expect(podutils.IsPodReady(live.(*corev1.Pod))).To(BeTrue())
			}
		})
	}
}
