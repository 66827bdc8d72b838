// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

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
)

// judge returns what Flux and Argo CD say of the set as the API server has it.
func (w *world) judge() gitops.Verdicts {
	GinkgoHelper()
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(appsv1beta1.GroupVersion.WithKind("DaemonSet"))
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

// rollOut brings the set to rest. Until so many pods are updated, Flux and Argo CD say that it is
// on its way.
func (w *world) rollOut(updated int32) {
	GinkgoHelper()
	w.expectJudged(gitops.InProgress, gitops.Progressing, "has not seen this generation")
	w.settleWith(func() {
		GinkgoHelper()
		if status := w.status(); status.UpdatedNumberScheduled < updated || status.NumberUnavailable > 0 {
			w.expectJudged(gitops.InProgress, gitops.Progressing, "pods")
		}
	})
}

var _ = Describe("What Flux and Argo CD say of a DaemonSet", func() {
	It("is right from its creation to its deletion", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference())
		w.rollOut(3)
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")

		By("an update")
		w.setImage("nginx:latest")
		w.rollOut(3)
		w.expectJudged(gitops.Current, gitops.Healthy, "3 pods are available")

		By("a pause")
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To(true) })
		w.setImage("nginx:alpine")
		w.settle()
		w.expectJudged(gitops.InProgress, gitops.Suspended, "paused with 3 pods to update")

		By("a partition")
		w.change(func(set *appsv1beta1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Paused = nil
			partitioned("2")(set)
		})
		w.rollOut(1)
		w.expectJudged(gitops.Current, gitops.Healthy, "partition keeps 2 pods at their revision")

		By("OnDelete")
		w.change(func(set *appsv1beta1.DaemonSet) {
			partitioned("0")(set)
			set.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
		})
		w.settle()
		w.expectJudged(gitops.Current, gitops.Healthy, "2 pods get the new revision when they are deleted")

		By("its deletion")
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy(metav1.DeletePropagationForeground))).To(Succeed())
		w.reconcile()
		w.expectJudged(gitops.Terminating, gitops.Progressing, "being deleted")
	})

	It("is that it is ready where it runs on no node", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().NodeSelector("disk", "fast"))
		w.expectJudged(gitops.Current, gitops.Healthy, "0 pods are available")
	})

	It("is that it is stuck on an image that cannot be pulled", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:no-such-tag")
		w.settle()
		w.expectJudged(gitops.Failed, gitops.Degraded, "ImagePullBackOff: pod sample-")
	})

	// A revision that a user has written, or a later release.
	It("is that it is stuck on what cannot be read, and that it is ready no more", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		broken := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: w.namespace, Name: "sample-broken", Labels: w.set.Spec.Selector.MatchLabels,
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.set, appsv1beta1.GroupVersion.WithKind("DaemonSet"))},
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
