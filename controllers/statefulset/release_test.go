// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"
	"time"

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

var _ = Describe("A pod that loses its labels", func() {
	It("is released, its name is reported as taken, and others are updated", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		uids := w.uids()
		w.manager.Forget()
		w.unlabel("sample-1", "app")
		w.reconcileFailing()
		Expect(w.pod("sample-1").OwnerReferences).To(BeEmpty())
		Expect(w.manager.Writes("")).To(ConsistOf("patch Pod sample-1", "patch StatefulSet/status sample"))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(And(
			ContainSubstring("create pod"), ContainSubstring("the name is taken by a pod that is not part of the set"),
			ContainSubstring("delete pod sample-1, or give it the labels of spec.selector"), ContainSubstring("already exists")))
		Expect(w.recorder.Events(appsv1beta1.ReasonFailedCreate)).To(ContainElement(And(
			HaveField("Kind", "StatefulSet"), HaveField("Note", ContainSubstring("delete pod sample-1")))))
		status := w.status()
		Expect(status.Replicas).To(BeEquivalentTo(2))
		Expect(status.ReadyReplicas).To(BeEquivalentTo(2))
		Expect(status.UpdatedReplicas).To(BeEquivalentTo(2))

		w.setImage("nginx:latest")
		for range 20 {
			w.reconcileFailing()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
		}
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:latest", "sample-1": "nginx:alpine", "sample-2": "nginx:latest"}))
		Expect(w.uids()).To(Equal(uids))
		w.manager.Forget()
		w.reconcileFailing()
		Expect(w.manager.Writes("")).To(BeEmpty(), "the same failure is not written again")
	})

	It("does not keep others from being created", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.label("sample-1", "app", "debug")
		w.scale(5)
		w.reconcileFailing()
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-1", "sample-2", "sample-3", "sample-4"}))
	})

	It("is adopted again when it gets them back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.unlabel("sample-1", "app")
		w.reconcileFailing()
		w.label("sample-1", "app", "sample")
		w.manager.Forget()
		w.recover()
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.manager.Writes("patch Pod")).To(Equal([]string{"patch Pod sample-1"}))
		Expect(metav1.IsControlledBy(w.pod("sample-1"), w.set)).To(BeTrue())
		w.expectNoWrites()
	})

	It("gets a successor when it is deleted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uid := w.pod("sample-1").UID
		w.unlabel("sample-1", "app")
		w.reconcileFailing()
		w.deletePod("sample-1")
		w.kubelet.Sync(w.ctx)
		w.recover()
		w.settle()
		w.expectSettled(3)
		Expect(w.pod("sample-1").UID).NotTo(Equal(uid))
	})

	It("is not released while it is being deleted: its name is free in a moment", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.unlabel("sample-1", "app")
		w.deletePod("sample-1")
		w.manager.Forget()
		w.reconcile()
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
		w.settle()
		w.expectSettled(3)
		Expect(w.recorder.Events(appsv1beta1.ReasonFailedCreate)).To(BeEmpty())
	})

	It("is left to the garbage collector when the set is being deleted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.unlabel("sample-1", "app")
		w.manager.Forget()
		Expect(w.api.Delete(w.ctx, w.refresh(), client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		Expect(w.tryReconcile()).To(Equal(ctrl.Result{}))
		Expect(w.manager.Writes("")).To(BeEmpty())
		Expect(metav1.IsControlledBy(w.pod("sample-1"), w.set)).To(BeTrue())
	})

	It("is neither counted nor changed when its release fails", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(3))
		w.unlabel("sample-1", "app")
		w.setImage("nginx:latest")
		w.refuse("patch Pod sample-1", apierrors.NewForbidden(corev1.Resource("pods"), "sample-1", errors.New("denied by a webhook")))
		w.reconcileFailing()
		Expect(w.status().Replicas).To(BeEquivalentTo(2))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedUpdatePod).Message).To(And(
			ContainSubstring("release pod"), ContainSubstring("denied by a webhook")))
		Expect(w.images()).To(HaveKeyWithValue("sample-1", "nginx:alpine"))
		Expect(w.manager.Writes("patch Pod/status sample-0")).NotTo(BeEmpty(), "others go on")
	})

	It("is tried again when it changed meanwhile", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.unlabel("sample-1", "app")
		w.refuse("patch Pod sample-1", apierrors.NewConflict(corev1.Resource("pods"), "sample-1", errors.New("modified")))
		w.reconcileFailing()
		Expect(metav1.IsControlledBy(w.pod("sample-1"), w.set)).To(BeTrue())
		w.manager.Before = nil
		w.reconcileFailing()
		Expect(w.pod("sample-1").OwnerReferences).To(BeEmpty())
	})

	// What is done to the pod from now on must not cost its data.
	It("loses the claim that a scale-down gave to it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(claiming(keep, remove))
		w.condemn()
		Expect(w.owners()).To(Equal(three("", "the pod", "the pod")))
		w.unlabel("sample-2", "app")
		w.settle()
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-2"}))
		Expect(w.status().Replicas).To(BeEquivalentTo(1))
		Expect(w.owners()).To(Equal(three("", "a pod", "")))
		Expect(w.pod("sample-2").OwnerReferences).To(BeEmpty())
	})

	It("keeps its revision: what pods were made from stays known", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		for _, revision := range w.revisions() {
			before := revision.DeepCopy()
			revision.Labels = nil
			Expect(w.api.Patch(w.ctx, &revision, client.MergeFrom(before))).To(Succeed())
		}
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.revisions()).To(HaveLen(2))
	})
})
