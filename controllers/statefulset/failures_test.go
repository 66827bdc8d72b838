// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"errors"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// limitPods makes a quota of pods that is used up, and waits until the API server
// knows of it.
func (w *world) limitPods(pods string) {
	GinkgoHelper()
	limit := corev1.ResourceList{corev1.ResourcePods: resource.MustParse(pods)}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "few-pods"}, Spec: corev1.ResourceQuotaSpec{Hard: limit},
	}
	Expect(w.api.Create(w.ctx, quota)).To(Succeed())
	quota.Status = corev1.ResourceQuotaStatus{Hard: limit, Used: limit}
	Expect(w.api.Status().Update(w.ctx, quota)).To(Succeed())
	Eventually(func() error {
		return w.api.Create(w.ctx, barePod(w.namespace, "probe", nil), client.DryRunAll, client.DisableReadYourWritesConsistency)
	}).Should(MatchError(ContainSubstring("exceeded quota")))
}

// refuse makes the manager's writes fail whose name begins with a prefix, and
// their dry runs, as admission does.
func (w *world) refuse(prefix string, err error) {
	w.manager.Before = func(write string, _ client.Object) error {
		if strings.HasPrefix(strings.TrimPrefix(write, "dry-run "), prefix) {
			return err
		}
		return nil
	}
}

var _ = Describe("A pod that cannot be created", func() {
	It("is reported in the server's words, and does not stop the update of others", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		uids := w.uids()
		w.limitPods("3")
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Replicas = ptr.To[int32](4)
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		for range 20 {
			w.reconcileFailing()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
		}
		failed := conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod)
		Expect(failed.Message).To(And(ContainSubstring("sample-3"), ContainSubstring("exceeded quota: few-pods, requested: pods=1, used: pods=3, limited: pods=3")))
		Expect(w.recorder.Events(appsv1beta1.ReasonFailedCreate)).To(ContainElement(HaveField("Note", ContainSubstring("exceeded quota"))))
		Expect(w.images()).To(Equal(same("nginx:latest")))
		Expect(w.uids()).To(Equal(uids))
		w.manager.Forget()
		w.reconcileFailing()
		Expect(w.manager.Writes("")).To(BeEmpty(), "the same failure is not written again")

		Expect(w.api.Delete(w.ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "few-pods"}})).To(Succeed())
		w.recover()
		w.settle()
		w.expectSettled(4)
	})

	It("is one of three that a reconciliation tries, also if replicas is a million", func(ctx context.Context) {
		w := newWorld(ctx)
		w.limitPods("0")
		w.apply(reference().Replicas(1_000_000).Build())
		for range 5 {
			w.reconcileFailing()
		}
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(ContainSubstring("exceeded quota: few-pods"))
		Expect(conditionOf(w.set, appsv1beta1.ConditionReady).Message).To(Equal("0 of 1000000 pods exist"))
		Expect(w.recorder.Events(appsv1beta1.ReasonFailedCreate)).To(HaveLen(5 * workload.MaxFailures))
	})

	// controller-runtime does not look at RequeueAfter beside an error, and waits
	// up to 16 minutes before it retries: the manager would not end the grace period in time.
	It("does not keep another pod out of service for longer than its grace period", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().GracePeriod(30).MaxUnavailable(2))
		w.setImage("nginx:latest")
		w.reconcile()
		w.kubelet.Sync(w.ctx)
		w.scale(4)
		w.refuse("create Pod", apierrors.NewForbidden(corev1.Resource("pods"), "sample-3", errors.New("exceeded quota")))
		result, err := w.tryReconcile()
		Expect(err).NotTo(HaveOccurred(), "RequeueAfter counts only without an error")
		Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 30*time.Second)))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(ContainSubstring("exceeded quota"))
	})

	// The quota admission answers with a conflict when two creations race: no
	// object that is watched changes afterwards.
	It("because of a conflict is tried again", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Build())
		w.refuse("create Pod sample-1", apierrors.NewConflict(corev1.Resource("resourcequotas"), "few-pods", errors.New("the object has been modified")))
		w.reconcileFailing()
		w.manager.Before = nil
		w.settle()
		w.expectSettled(3)
	})

	It("one of hundreds, is still reported", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Replicas(300).Build())
		long := "denied by the policy that denies everything, with many words about why it does so and whom to ask about it"
		w.refuse("create Pod", apierrors.NewForbidden(corev1.Resource("pods"), "sample", errors.New(long)))
		w.reconcileFailing()
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(ContainSubstring("denied by the policy"))
	})
})

var _ = Describe("A pod that cannot be updated", func() {
	It("is reported in the server's words, and does not stop others", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		w.refuse("patch Pod sample-2", apierrors.NewForbidden(corev1.Resource("pods"), "sample-2", errors.New("denied by a webhook")))
		w.setImage("nginx:latest")
		for range 12 {
			_, _ = w.tryReconcile()
			w.expectStatusInvariants()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
		}
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:latest", "sample-1": "nginx:latest", "sample-2": "nginx:alpine"}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedUpdatePod).Message).To(And(
			ContainSubstring("sample-2"), ContainSubstring("denied by a webhook")))
		Expect(w.recorder.Events(inplace.ReasonAdmissionDenied)).To(ConsistOf(HaveField("Kind", "StatefulSet"), HaveField("Kind", "Pod")))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", inplace.ReasonAdmissionDenied)))
		Expect(stage.PodConditionStatus(w.pod("sample-2"), corev1.PodReady)).To(Equal(corev1.ConditionTrue), "it serves as it is")
		Expect(w.manager.Writes("patch Pod/status sample-2")).To(HaveLen(1), "it went into service once, and was never drained")
		Expect(w.status().Blockers).To(ContainElement(And(
			HaveField("Pod", "sample-2"), HaveField("Message", ContainSubstring("denied by a webhook")))))

		w.manager.Before = nil
		w.settle()
		w.expectSettled(3)
		Expect(w.restarts()).To(Equal(same[int32](1)))
	})

	It("together with others, is reported without a write per retry", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(3).Ungated())
		w.refuse("patch Pod", apierrors.NewForbidden(corev1.Resource("pods"), "x", errors.New("denied")))
		w.setImage("nginx:latest")
		w.reconcileFailing() // the writes are refused
		w.reconcileFailing() // what follows from that
		w.manager.Forget()
		for range 10 {
			w.reconcileFailing()
			w.clock.Step(5 * time.Second)
		}
		Expect(w.manager.Writes("")).To(BeEmpty())
	})
})
