// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// disown removes the owner references of an object, as the garbage collector does
// with --cascade=orphan.
func (w *world) disown(obj client.Object) {
	GinkgoHelper()
	before := obj.DeepCopyObject().(client.Object)
	obj.SetOwnerReferences(nil)
	Expect(w.api.Patch(w.ctx, obj, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A pod of a CloneSet", func() {
	It("is taken over with its revision and its claims when the set is made again", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		uids := w.uids()
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		for _, pod := range w.pods() {
			w.disown(pod)
		}
		for _, revision := range w.revisions() {
			w.disown(&revision)
		}
		for _, claim := range w.claims() {
			w.disown(claim)
		}
		w.apply(reference().With(claiming(false)))
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
		Expect(w.uids()).To(Equal(uids))
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids), "in place")
	})

	It("is let go with its claim when it loses its labels, and comes back with them", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		stray := w.podNames()[0]
		w.changePod(stray, func(pod *corev1.Pod) { delete(pod.Labels, "app") })
		w.settle()
		Expect(w.pods()).To(HaveLen(5))
		Expect(w.pods()[stray].OwnerReferences).To(BeEmpty())
		Expect(w.claims()["data-"+stray].OwnerReferences).To(BeEmpty())
		w.expectNoWrites()

		w.changePod(stray, func(pod *corev1.Pod) { pod.Labels["app"] = "sample" })
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
	})

	It("that has another name is not touched", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		foreign := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sample-foreign", Labels: map[string]string{"app": "sample"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}},
		}
		Expect(w.api.Create(w.ctx, foreign)).To(Succeed())
		w.settle()
		Expect(w.pods()["sample-foreign"].OwnerReferences).To(BeEmpty())
		Expect(w.status().Replicas).To(BeEquivalentTo(4))
	})
})

var _ = Describe("A settled CloneSet", func() {
	It("costs no writes, also after a restart of the manager", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxSurge(1).With(partitioned("50%")).With(claiming(true)).With(deadline(600)))
		w.setImage("nginx:latest")
		w.settle()
		w.expectNoWrites()
		w.startManager(newView())
		w.expectNoWrites()
	})

	It("reports what cannot be carried out", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
		})
		w.settle()
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
		Expect(w.status().Blockers).To(HaveLen(4))
	})
})
