// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
)

const holdLabel = "example.io/hold"

// hooked gives the pods a label by which a hook holds them before their deletion.
func hooked(set *appsv1beta1.CloneSet) {
	set.Spec.Template.Labels = map[string]string{"app": "sample", holdLabel: "yes"}
	set.Spec.Lifecycle = &appsv1beta1.Lifecycle{
		PreDelete: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{holdLabel: "yes"}},
	}
}

// preparing returns the names of the pods that are held before their deletion.
func (w *world) preparing() []string {
	GinkgoHelper()
	return slices.DeleteFunc(w.podNames(), func(name string) bool {
		return w.pods()[name].Labels[appsv1beta1.LifecycleStateKey] != string(appsv1beta1.LifecycleStatePreparingDelete)
	})
}

func (w *world) release(names ...string) {
	GinkgoHelper()
	for _, name := range names {
		w.changePod(name, func(pod *corev1.Pod) { delete(pod.Labels, holdLabel) })
	}
}

var _ = Describe("A pod that a hook holds before its deletion", func() {
	It("keeps its claim until the hook releases it", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked).With(claiming(false)))
		w.scale(3)
		w.settle()
		held := w.preparing()
		Expect(held).To(HaveLen(1))
		Expect(w.pods()).To(HaveLen(4))
		Expect(w.claims()["data-"+held[0]].OwnerReferences).To(ConsistOf(HaveField("UID", w.set.UID)))
		Expect(w.status().Blockers).To(ContainElement(And(HaveField("Pod", held[0]), HaveField("Reason", inplace.ReasonPreDeleteHook))))
		w.expectNoWrites()

		w.release(held...)
		w.settle()
		w.expectSettled(3)
		w.expectClaims()
	})

	It("keeps no other away when it has ended, also where claims are reused", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked).With(claiming(true)))
		ended := w.pods()[w.podNames()[0]]
		ended.Status.Phase = corev1.PodFailed
		Expect(w.api.Status().Update(w.ctx, ended)).To(Succeed())
		w.settle()
		Expect(w.pods()).To(HaveLen(5), "a hook holds it, and another one serves in its place")
		Expect(w.pods()[ended.Name].UID).To(Equal(ended.UID))
	})

	It("serves again when it is wanted again", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked))
		before := w.uids()
		w.scale(2)
		w.settle()
		Expect(w.preparing()).To(HaveLen(2))
		w.scale(4)
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(before))
	})

	It("is no replica where the spec leaves it out", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked).With(deadline(30)).With(func(set *appsv1beta1.CloneSet) { set.Spec.ScaleStrategy.ExcludePreparingDelete = true }))
		w.scale(3)
		w.settle()
		held := w.preparing()
		Expect(held).To(HaveLen(1))
		w.clock.Step(time.Hour)
		w.reconcile()
		w.expectProgress(metav1.ConditionTrue, "CloneSetUpdated", "CloneSet is progressing")
		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = ptr.To[int32](4) })
		w.settle()
		Expect(w.pods()).To(HaveLen(5), "another one takes its place")
		Expect(w.status().Replicas).To(BeEquivalentTo(5), "it is counted, as in OpenKruise")
		Expect(w.preparing()).To(Equal(held))
		w.release(held...)
		w.settle()
		w.expectSettled(4)
		w.expectProgress(metav1.ConditionTrue, "CloneSetAvailable", "CloneSet is available")
	})

	It("is replaced beyond replicas before it goes", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Replicas(2).With(hooked).MaxSurge(1).MaxUnavailable(0).Policy(appsv1beta1.RecreatePodUpdateStrategyType))
		w.setImage("nginx:latest")
		for range 2 {
			w.settleWith(func() {
				available := 0
				for name, pod := range w.active() {
					if !slices.Contains(w.preparing(), name) && pod.Status.Phase == corev1.PodRunning {
						available++
					}
				}
				Expect(available).To(BeNumerically(">=", 2))
			})
			Expect(w.preparing()).To(HaveLen(1))
			w.release(w.preparing()...)
		}
		w.settle()
		w.expectSettled(2)
	})
})
