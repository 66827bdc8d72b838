// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/config/argocd"
	"github.com/insitu-dev/insitu/test/gitops"
	"github.com/insitu-dev/insitu/test/short"
)

// judge returns what Flux and Argo CD say of the set as the API server has it.
func (w *world) judge() gitops.Verdicts {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("StatefulSet"))
	Expect(w.live.Get(w.ctx, client.ObjectKeyFromObject(w.set), live)).To(Succeed())
	verdicts, err := gitops.Judge(w.ctx, argocd.Health, live)
	Expect(err).NotTo(HaveOccurred())
	return verdicts
}

// expectJudged checks what Flux and Argo CD say of the set.
func (w *world) expectJudged(flux status.Status, argo gitops.HealthStatus, words string) {
	GinkgoHelper()
	verdicts := w.judge()
	Expect(verdicts).To(And(HaveField("Flux", flux), HaveField("ArgoCD", argo), HaveField("Message", ContainSubstring(words))))
	if flux != gitops.Terminating {
		Expect(verdicts.Waited).To(Equal(flux == gitops.Current), "kubectl wait --for=condition=Ready")
	}
}

// rollOut brings the set to rest. Until it is done, Flux and Argo CD say that it is on
// its way.
func (w *world) rollOut() {
	GinkgoHelper()
	w.expectJudged(gitops.InProgress, gitops.Progressing, "has not seen this generation")
	w.settleWith(func() {
		GinkgoHelper()
		set := w.refresh()
		if set.Status.UpdatedAvailableReplicas < *set.Spec.Replicas-ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate.Partition, 0) {
			w.expectJudged(gitops.InProgress, gitops.Progressing, "pods")
		}
	})
}

var _ = Describe("What Flux and Argo CD say of a StatefulSet", func() {
	strategy := func(change func(*appsv1beta1.RollingUpdateStatefulSetStrategy)) func(*appsv1beta1.StatefulSet) {
		return func(set *appsv1beta1.StatefulSet) { change(set.Spec.UpdateStrategy.RollingUpdate) }
	}

	It("is right from its creation to its deletion", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Build())
		w.expectJudged(gitops.InProgress, gitops.Progressing, "has not seen this generation")
		w.rollOut()
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")

		By("an update")
		w.setImage("nginx:latest")
		w.rollOut()
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")

		By("a pause")
		w.change(strategy(func(rolling *appsv1beta1.RollingUpdateStatefulSetStrategy) { rolling.Paused = true }))
		w.settle()
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")
		w.setImage("nginx:alpine")
		w.settle()
		w.expectJudged(gitops.InProgress, gitops.Suspended, "paused with 3 pods to update")

		By("a partition")
		w.change(strategy(func(rolling *appsv1beta1.RollingUpdateStatefulSetStrategy) {
			rolling.Paused, rolling.Partition = false, ptr.To[int32](2)
		}))
		w.rollOut()
		w.expectJudged(gitops.Current, gitops.Healthy, "partition keeps 2 pods at their revision")

		By("no pods")
		w.change(strategy(func(rolling *appsv1beta1.RollingUpdateStatefulSetStrategy) { rolling.Partition = nil }))
		w.scale(0)
		w.rollOut()
		w.expectJudged(gitops.Current, gitops.Healthy, "0 pods are available")

		By("OnDelete")
		w.scale(3)
		w.rollOut()
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		})
		w.setImage("nginx:latest")
		w.settle()
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods get the new revision when they are deleted")

		By("its deletion")
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		w.reconcile()
		w.expectJudged(gitops.Terminating, gitops.Progressing, "being deleted")
	})

	It("is that it is stuck, with why, once it is for too long", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(strategy(func(rolling *appsv1beta1.RollingUpdateStatefulSetStrategy) {
			rolling.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{DeadlineSeconds: ptr.To[int32](60)}
		})))
		w.setImage("nginx:no-such-tag")
		w.settle()
		w.expectJudged(gitops.Failed, gitops.Degraded, "ImagePullBackOff: pod sample-2: longer than 45s: container main")
		Expect(w.judge().Shipped).NotTo(Equal(gitops.Healthy))
		stalled := conditionOf(w.refresh(), appsv1beta1.ConditionStalled)
		Expect(stalled.Reason).To(Equal(w.status().Blockers[0].Reason))
		Expect(w.recorder.Events(stalled.Reason)).NotTo(BeEmpty(), "the same word in the event")

		w.setImage("nginx:alpine")
		w.settle()
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")
	})

	It("is that it is stuck on an image that cannot be pulled, whatever the deadline", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:no-such-tag")
		w.settle()
		w.expectJudged(gitops.Failed, gitops.Degraded, "ImagePullBackOff: pod sample-2: longer than 45s: container main")
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionReady).Message).To(ContainSubstring("; pod sample-2: ImagePullBackOff: "))
		Expect(w.judge().Shipped).NotTo(Equal(gitops.Healthy))
	})

	// A revision that a user has written, or a later release.
	It("is that it is stuck on what cannot be read, and that it is ready no more", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		broken := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: "sample-broken", Labels: w.set.Spec.Selector.MatchLabels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.set, appsv1beta1.GroupVersion.WithKind("StatefulSet"))},
			},
			Data: runtime.RawExtension{Raw: []byte(`{"spec":{"template":7}}`)}, Revision: 9,
		}
		Expect(w.api.Create(w.ctx, broken)).To(Succeed())
		w.setImage("nginx:latest")
		_, _ = w.tryReconcile()
		w.expectJudged(gitops.Failed, gitops.Degraded, "InvalidSpec: ")

		Expect(w.api.Delete(w.ctx, broken)).To(Succeed())
		w.settle()
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")
	})
})
