// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

// setOwners changes the owner references of an object.
func (w *world) setOwners(obj client.Object, change func([]metav1.OwnerReference) []metav1.OwnerReference) {
	GinkgoHelper()
	before := obj.DeepCopyObject().(client.Object)
	obj.SetOwnerReferences(change(obj.GetOwnerReferences()))
	Expect(w.api.Patch(w.ctx, obj, client.MergeFrom(before))).To(Succeed())
}

// everyOwned changes the owner references of all pods and revisions.
func (w *world) everyOwned(change func([]metav1.OwnerReference) []metav1.OwnerReference) {
	GinkgoHelper()
	for _, pod := range w.pods() {
		w.setOwners(pod, change)
	}
	for _, revision := range w.revisions() {
		w.setOwners(&revision, change)
	}
}

var _ = Describe("The pods of a DaemonSet", func() {
	It("are its own whatever version its owner references have", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.everyOwned(func(owners []metav1.OwnerReference) []metav1.OwnerReference {
			owners = slices.Clone(owners)
			owners[0].APIVersion = "apps.kruise.io/v1alpha1"
			return owners
		})
		w.startManager(shared)
		w.expectNoWrites()
		w.expectSettled(3)

		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(9), "the steps of the update and nothing else")
		for _, pod := range w.pods() {
			Expect(pod.OwnerReferences).To(ConsistOf(And(HaveField("UID", w.set.UID), HaveField("APIVersion", "apps.kruise.io/v1alpha1"))))
		}
	})

	It("are taken over with their revision when the set is made again", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		w.everyOwned(func([]metav1.OwnerReference) []metav1.OwnerReference { return nil })
		w.apply(reference())
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids), "in place")
	})

	It("are released when they lose their labels, and come back with them", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		stray := w.on("node-2").Name
		w.changePod(stray, func(pod *corev1.Pod) { delete(pod.Labels, "app") })
		w.settle()
		Expect(w.pods()).To(HaveLen(4), "its node gets another one")
		Expect(w.pods()[stray].OwnerReferences).To(BeEmpty())
		w.expectNoWrites()

		w.changePod(stray, func(pod *corev1.Pod) { pod.Labels["app"] = "sample" })
		w.settle()
		w.expectSettled(3)
		Expect(w.on("node-2").Name).To(Equal(stray), "the older one stays")
	})

	It("are not those of another set of that name", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		other := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: "other", Namespace: w.namespace, Labels: map[string]string{"app": "sample"},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "sample", UID: "another", Controller: new(true)}},
			},
			Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}},
		}
		Expect(w.api.Create(w.ctx, other)).To(Succeed())
		w.kubelet.Sync(w.ctx)
		w.expectNoWrites()
		Expect(slices.Sorted(maps.Keys(w.pods()))).To(HaveLen(4))
	})
})

var _ = Describe("A settled DaemonSet", func() {
	It("costs no writes, also after a restart of the manager", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("1").MinReadySeconds(5).With(hooked).With(func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		}))
		w.setImage("nginx:latest")
		w.settle()
		w.expectNoWrites()
		w.startManager(newView())
		w.expectNoWrites()
	})
})
