// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

const holdLabel = "example.io/hold"

// hooked is one pod with a hook by a label, that its template has.
func hooked(lifecycle appsv1beta1.Lifecycle) *builders.StatefulSetBuilder {
	return reference().Replicas(1).With(func(set *appsv1beta1.StatefulSet) {
		set.Spec.Template.Labels = map[string]string{"app": "sample", holdLabel: "yes"} // not in the selector
		set.Spec.Lifecycle = &lifecycle
	})
}

func byLabel(mark bool) *appsv1beta1.LifecycleHook {
	return &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{holdLabel: "yes"}, MarkPodNotReady: mark}
}

func (w *world) state(pod string) string {
	GinkgoHelper()
	return w.pod(pod).Labels[appsv1beta1.LifecycleStateKey]
}

var _ = Describe("Lifecycle hooks", func() {
	It("cost one write before the update, and one after it", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(hooked(appsv1beta1.Lifecycle{InPlaceUpdate: byLabel(true)}))
		uid := w.uids()
		w.startManager(shared)
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.state("sample-0")).To(Equal("PreparingUpdate"))
		Expect(w.pod("sample-0").Annotations).To(HaveKeyWithValue(appsv1beta1.PendingUpdateKey, ContainSubstring("nginx:latest")))
		Expect(stage.PodConditionStatus(w.pod("sample-0"), appsv1beta1.KruisePodReady)).To(Equal(corev1.ConditionFalse))
		Expect(w.status().Blockers).To(ConsistOf(And(
			HaveField("Reason", inplace.ReasonInPlaceUpdateHook), HaveField("Message", ContainSubstring("label example.io/hold=yes")))))

		w.unlabel("sample-0", holdLabel)
		w.settle()
		Expect(w.state("sample-0")).To(Equal("Updated"))
		Expect(w.status().Blockers).To(ConsistOf(HaveField("Reason", inplace.ReasonUpdatedHook)))
		w.label("sample-0", holdLabel, "yes")
		w.settle()
		Expect(w.state("sample-0")).To(Equal("Normal"))
		w.expectSettled(1)
		Expect(w.uids()).To(Equal(uid))
		// Held and marked; changed, since it was out of service already; back in
		// service and Updated; Normal.
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(4))
	})

	It("that are not defined cost nothing", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(hooked(appsv1beta1.Lifecycle{}))
		w.startManager(shared)
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(1)
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(3))
		Expect(w.pod("sample-0").Labels).NotTo(HaveKey(appsv1beta1.LifecycleStateKey))
	})

	It("give a pod back when they are taken from the set", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(hooked(appsv1beta1.Lifecycle{InPlaceUpdate: byLabel(true)}))
		w.setImage("nginx:latest")
		w.settle()
		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Lifecycle = nil })
		w.settle()
		w.expectSettled(1)
		Expect(stage.PodConditionStatus(w.pod("sample-0"), appsv1beta1.KruisePodReady)).To(Equal(corev1.ConditionTrue))
	})

	It("hold a pod that a scale-down removes, across managers", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(hooked(appsv1beta1.Lifecycle{PreDelete: byLabel(true)}))
		w.scale(0)
		w.settle()
		Expect(w.state("sample-0")).To(Equal("PreparingDelete"))
		Expect(w.status().Replicas).To(BeEquivalentTo(1))
		Expect(w.status().Blockers).To(ConsistOf(HaveField("Reason", inplace.ReasonPreDeleteHook)))
		w.startManager(shared)
		w.settle()
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())

		// Marked not ready for its deletion, it goes also when it is wanted again.
		w.scale(1)
		w.settle()
		uid := w.pod("sample-0").UID
		Expect(w.state("sample-0")).To(Equal("PreparingDelete"))
		w.unlabel("sample-0", holdLabel)
		Eventually(func() bool {
			_, _ = w.tryReconcile()
			w.kubelet.Sync(ctx)
			return w.pods()["sample-0"] != nil && w.pod("sample-0").UID != uid
		}).Should(BeTrue())
	})

	It("leave what others wrote into KruisePodReady", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(hooked(appsv1beta1.Lifecycle{InPlaceUpdate: &appsv1beta1.LifecycleHook{MarkPodNotReady: true}}))
		pod := w.pod("sample-0")
		before := pod.DeepCopy()
		for i := range pod.Status.Conditions {
			if c := &pod.Status.Conditions[i]; c.Type == appsv1beta1.KruisePodReady {
				c.Status, c.Message = corev1.ConditionFalse, `[{"userAgent":"Another","key":"client"}]`
			}
		}
		Expect(w.api.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(HaveEach("nginx:latest"))
		after := w.pod("sample-0")
		for _, c := range after.Status.Conditions {
			if c.Type == appsv1beta1.KruisePodReady {
				Expect(c.Status).To(Equal(corev1.ConditionFalse))
				Expect(c.Message).To(MatchJSON(`[{"userAgent":"Another","key":"client"}]`))
			}
		}
	})
})
