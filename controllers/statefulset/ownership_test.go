// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

// disown removes the owner references of an object, as the garbage collector
// does after a deletion with --cascade=orphan.
func (w *world) disown(obj client.Object) {
	GinkgoHelper()
	before, ok := obj.DeepCopyObject().(client.Object)
	Expect(ok).To(BeTrue())
	obj.SetOwnerReferences(nil)
	Expect(w.api.Patch(w.ctx, obj, client.MergeFrom(before))).To(Succeed())
}

// deleteOrphaning deletes the set and leaves everything that it made.
func (w *world) deleteOrphaning() {
	GinkgoHelper()
	for _, pod := range w.pods() {
		w.disown(pod)
	}
	for _, revision := range w.revisions() {
		w.disown(&revision)
	}
	Expect(w.api.Delete(w.ctx, w.refresh(), client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
}

func barePod(namespace, name string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}}},
	}
}

var _ = Describe("Ownership", func() {
	It("of a pod that lost its owner is taken back with one write", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.manager.Forget()
		w.disown(w.pod("sample-1"))
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.manager.Writes("")).To(Equal([]string{"patch Pod sample-1"}))
		Expect(metav1.IsControlledBy(w.pod("sample-1"), w.set)).To(BeTrue())
	})

	// A pod without an owner causes no event for the set.
	It("is tried again when the pod changed meanwhile", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.disown(w.pod("sample-1"))
		w.refuse("patch Pod sample-1", apierrors.NewConflict(corev1.Resource("pods"), "sample-1", errors.New("modified")))
		result, err := w.tryReconcile()
		Expect(err).NotTo(HaveOccurred())
		Expect(result.RequeueAfter).To(BeNumerically(">", 0))
		w.manager.Before = nil
		w.settle()
		w.expectSettled(3)
	})

	It("goes to a set that is made again, which takes the pods as they are", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.deleteOrphaning()
		w.apply(reference().Build())
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](0)))
	})

	It("goes to a set that is made again with a new image, which changes the pods in place", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.deleteOrphaning()
		set := reference().Build()
		set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		w.apply(set)
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.images()).To(Equal(same("nginx:latest")))
	})

	It("does not reach for pods with other names or labels", func(ctx context.Context) {
		w := newWorld(ctx)
		for name, labels := range map[string]map[string]string{
			"sample-00": {"app": "sample"}, "other": {"app": "sample"}, "sample-x-0": {"app": "sample"}, "sample-9": {"app": "other"},
		} {
			Expect(w.api.Create(w.ctx, barePod(w.namespace, name, labels))).To(Succeed())
		}
		w.create(reference())
		for _, name := range []string{"sample-00", "other", "sample-x-0", "sample-9"} {
			Expect(w.pod(name).OwnerReferences).To(BeEmpty(), name)
		}
		Expect(w.status().Replicas).To(BeEquivalentTo(3))
	})

	It("of a name by a pod of another client is reported", func(ctx context.Context) {
		w := newWorld(ctx)
		Expect(w.api.Create(w.ctx, barePod(w.namespace, "sample-1", nil))).To(Succeed())
		w.apply(reference().Build())
		w.reconcileFailing()
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(And(
			ContainSubstring("sample-1"), ContainSubstring("already exists")))
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-1", "sample-2"}), "the others are made")
		Expect(w.pod("sample-1").OwnerReferences).To(BeEmpty())
	})

	It("ends when the set is deleted: the garbage collector does the rest", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.manager.Forget()
		Expect(w.api.Delete(w.ctx, w.refresh(), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Expect(w.exists(w.set)).To(BeTrue(), "it waits for its pods")
		w.deletePod("sample-0")
		w.kubelet.Sync(w.ctx)
		Expect(w.tryReconcile()).To(Equal(ctrl.Result{}))
		Expect(w.manager.Writes("")).To(BeEmpty())
	})

	It("of a set that does not exist is no error", func(ctx context.Context) {
		w := newWorld(ctx)
		set := reference().Build()
		set.Namespace = w.namespace
		w.set = set
		Expect(w.tryReconcile()).To(Equal(ctrl.Result{}))
	})
})
