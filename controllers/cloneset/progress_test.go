// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

func deadline(seconds int32) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) { set.Spec.ProgressDeadlineSeconds = ptr.To(seconds) }
}

// expectProgress checks the condition Progressing.
func (w *world) expectProgress(status metav1.ConditionStatus, reason, message string) {
	GinkgoHelper()
	Expect(w.condition(appsv1beta1.ConditionProgressing)).To(And(
		HaveField("Status", status), HaveField("Reason", reason), HaveField("Message", message)))
}

var _ = Describe("The progress deadline", func() {
	const pause = 8 * time.Second

	It("is not reported on without progressDeadlineSeconds", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		Expect(w.condition(appsv1beta1.ConditionProgressing)).To(BeNil())
	})

	It("is extended by progress, and names what is at rest", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(deadline(20)))
		w.expectProgress(metav1.ConditionTrue, "CloneSetAvailable", "CloneSet is available")
		w.setImage("nginx:latest")
		began := w.clock.Now()
		w.settleWith(func() {
			w.clock.Step(pause / 2)
			Expect(w.condition(appsv1beta1.ConditionProgressing)).NotTo(HaveField("Reason", "ProgressDeadlineExceeded"))
		})
		Expect(w.clock.Since(began)).To(BeNumerically(">", 40*time.Second), "it took longer than the deadline")
		w.expectProgress(metav1.ConditionTrue, "CloneSetAvailable", "CloneSet is available")

		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true })
		w.setImage("nginx:alpine")
		w.settle()
		w.expectProgress(metav1.ConditionTrue, "CloneSetPaused", "CloneSet is paused")
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Paused = false
			partitioned("2")(set)
		})
		w.settle()
		w.expectProgress(metav1.ConditionTrue, "ProgressPartitionAvailable", "CloneSet has been paused due to partition ready")
	})

	It("is none for users, who delete the pods to be updated", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(deadline(30)).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.Type = appsv1beta1.OnDeleteCloneSetUpdateStrategyType
		}))
		w.setImage("nginx:latest")
		w.settle()
		w.clock.Step(time.Hour)
		w.reconcile()
		w.expectProgress(metav1.ConditionTrue, "CloneSetUpdated", "CloneSet is progressing")
		w.expectNoWrites()

		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy.Type = appsv1beta1.RollingUpdateCloneSetUpdateStrategyType
		})
		w.reconcile()
		w.expectProgress(metav1.ConditionTrue, "CloneSetUpdated", "CloneSet is progressing")
		w.settle()
		w.expectProgress(metav1.ConditionTrue, "CloneSetAvailable", "CloneSet is available")
	})

	It("is reported when it passes, at that moment, and not for ever", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(deadline(30)))
		w.setImage("nginx:no-such-tag")
		w.settle()
		status := w.status()
		w.expectProgress(metav1.ConditionFalse, "ProgressDeadlineExceeded",
			"CloneSet revision "+status.UpdateRevision+" has timed out progressing")
		w.expectNoWrites()

		w.change(deadline(90000))
		w.reconcile()
		w.expectProgress(metav1.ConditionTrue, "CloneSetUpdated", "CloneSet is progressing")
		w.change(deadline(30))
		w.reconcile()
		w.expectProgress(metav1.ConditionFalse, "ProgressDeadlineExceeded",
			"CloneSet revision "+status.UpdateRevision+" has timed out progressing")

		w.setImage("nginx:latest")
		Expect(w.reconcile().RequeueAfter).To(BeNumerically(">", 0))
		w.expectProgress(metav1.ConditionTrue, "CloneSetUpdated", "CloneSet is progressing")
		w.settle()
		w.expectProgress(metav1.ConditionTrue, "CloneSetAvailable", "CloneSet is available")
	})
})
