// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// expectReady checks that at least so many pods are ready.
func (w *world) expectReady(least int) {
	GinkgoHelper()
	ready := 0
	for _, pod := range w.pods() {
		if stage.PodConditionStatus(pod, corev1.PodReady) == corev1.ConditionTrue {
			ready++
		}
	}
	Expect(ready).To(BeNumerically(">=", least), "ready pods")
}

var _ = Describe("The label specified-delete", func() {
	DescribeTable("recreates pods within the budget", func(ctx context.Context, mutate func(*appsv1beta1.StatefulSet), image string) {
		w := newWorld(ctx)
		w.create(reference().With(mutate))
		w.setImage("nginx:latest")
		w.settle()
		before := w.uids()
		w.manager.Forget()
		w.label("sample-0", appsv1beta1.SpecifiedDeleteKey, "")
		w.label("sample-1", appsv1beta1.SpecifiedDeleteKey, "true")
		w.settleWith(func() { w.expectReady(2) })

		Expect(w.manager.Writes("delete Pod")).To(Equal([]string{"delete Pod sample-1", "delete Pod sample-0"}))
		Expect(w.uids()).To(HaveKeyWithValue("sample-2", before["sample-2"]))
		for _, name := range []string{"sample-0", "sample-1"} {
			pod := w.pod(name)
			Expect(pod.UID).NotTo(Equal(before[name]))
			Expect(pod.Spec.Containers[0].Image).To(Equal(image), "the revision that its ordinal gets")
			Expect(pod.Labels).NotTo(HaveKey(appsv1beta1.SpecifiedDeleteKey))
		}
		Expect(w.recorder.Events(appsv1beta1.ReasonRecreating)).To(ContainElements(
			HaveField("Note", "recreate: the label apps.kruise.io/specified-delete asks for it"),
			HaveField("Note", HavePrefix("pod sample-0: recreate: the label")),
		))
		Expect(w.status().Blockers).To(BeEmpty())
		w.expectNoWrites()
	},
		Entry("of a settled set", short.Spec, func(*appsv1beta1.StatefulSet) {}, "nginx:latest"),
		Entry("that the partition keeps", setPartition(3), "nginx:alpine"),
		Entry("while the update is paused", pause(true), "nginx:latest"),
		Entry("with InPlaceOnly", func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
		}, "nginx:latest"),
		Entry("with OnDelete", func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}, "nginx:latest"),
	)

	It("waits until all others are available with OrderedReady", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().OrderedReady())
		w.kubelet.Unready["sample-1"] = true
		w.settle()
		w.label("sample-0", appsv1beta1.SpecifiedDeleteKey, "")
		w.label("sample-2", appsv1beta1.SpecifiedDeleteKey, "")
		w.manager.Forget()
		w.settle()
		Expect(w.manager.Writes("delete Pod")).To(BeEmpty())
		Expect(w.status().Blockers).To(ContainElement(And(
			HaveField("Pod", "sample-0"), HaveField("Message", ContainSubstring("sample-1")))))

		w.kubelet.Unready["sample-1"] = false
		w.settleWith(func() { w.expectReady(2) })
		w.expectSettled(3)
		Expect(append(w.manager.Writes("delete Pod"), w.manager.Writes("create Pod")...)).To(Equal([]string{
			"delete Pod sample-2", "delete Pod sample-0", "create Pod sample-2", "create Pod sample-0",
		}))
	})

	It("recreates a broken pod outside the budget", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		before := w.uids()
		w.setImage("nginx:" + stage.MissingImage)
		w.settle()
		w.change(pause(true))
		w.kubelet.Unready["sample-0"] = true
		w.settle()
		w.label("sample-2", appsv1beta1.SpecifiedDeleteKey, "")
		w.settle()
		Expect(w.uids()["sample-2"]).NotTo(Equal(before["sample-2"]))
	})

	It("does not recreate pods for ever that have it from their template", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Labels = map[string]string{"app": "sample", appsv1beta1.SpecifiedDeleteKey: "true"}
		}))
		w.expectSettled(3)
		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Labels[appsv1beta1.SpecifiedDeleteKey] = "again" })
		w.settle()
		w.expectSettled(3)
		w.change(func(set *appsv1beta1.StatefulSet) { delete(set.Spec.Template.Labels, appsv1beta1.SpecifiedDeleteKey) })
		w.settle()
		w.expectSettled(3)
		Expect(w.manager.Writes("delete Pod")).To(BeEmpty())
		w.expectNoWrites()
	})
})
