// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"context"
	"encoding/json"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("gates", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	owners := map[string]func(labels map[string]string) client.Object{
		"a Deployment":  func(labels map[string]string) client.Object { return w.replicaSet(w.deployment(labels)) },
		"a StatefulSet": func(labels map[string]string) client.Object { return w.statefulSet(labels) },
		"a DaemonSet":   func(labels map[string]string) client.Object { return w.daemonSet(labels) },
	}
	for name, create := range owners {
		DescribeTable("of "+name+" are opened", func(labels map[string]string) {
			w.pod(create(labels))

			w.reconcile()

			Expect(w.gate()).To(Equal(corev1.ConditionTrue))
			Expect(w.live.count).To(BeZero(), "new pods are many")
			w.reconcile()
			Expect(w.manager.Writes("")).To(ConsistOf("patch Pod/status sample"))
		},
			Entry("that is not opted in", foreign),
			Entry("at rest", atRest),
		)

		DescribeTable("of "+name+" that is not held any more are opened", func(labels map[string]string) {
			w.drained(create(labels))

			w.reconcile()

			Expect(w.gate()).To(Equal(corev1.ConditionTrue))
		},
			Entry("because its label was taken off", foreign),
			Entry("because it was released", atRest),
		)

		It("of "+name+" that is held are left to its controller", func() {
			pod := w.pod(create(held))
			w.reconcile()
			w.setGate(pod, corev1.ConditionFalse)
			w.reconcile()

			Expect(w.manager.Writes("")).To(BeEmpty())
			Expect(w.live.count).To(BeZero(), "the cache has said so")
		})

		It("of "+name+" that is held are opened when its controller has forgotten them for a minute", func() {
			pod := w.pod(create(held))
			w.setCondition(pod, corev1.ContainersReady, corev1.ConditionTrue)

			result := w.reconcile()
			Expect(w.manager.Writes("")).To(BeEmpty())
			Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", time.Minute)))

			w.clock.Step(result.RequeueAfter)
			w.reconcile()
			Expect(w.gate()).To(Equal(corev1.ConditionTrue))
		})

		It("of "+name+" that is held stay closed of a pod that was taken out of service", func() {
			pod := w.drained(create(held))
			w.setCondition(pod, corev1.ContainersReady, corev1.ConditionTrue)
			w.clock.Step(time.Hour)
			w.reconcile()
			Expect(w.manager.Writes("")).To(BeEmpty())
		})

		It("of "+name+" that was held a moment ago, which the cache has not seen, are left alone", func() {
			w.drained(create(held))
			w.reconciler = gates.NewReconciler(blind{w.manager}, w.live, &clocktesting.FakeClock{})

			result := w.reconcile()

			Expect(w.manager.Writes("")).To(BeEmpty())
			Expect(result.RequeueAfter).NotTo(BeZero(), "no event may come of a hold that the cache does not see")
		})
	}

	It("of another of the name of a held workload are opened", func() {
		w.statefulSet(held)
		gone := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sample", UID: "gone"}}
		w.drained(gone)

		w.reconcile()

		Expect(w.gate()).To(Equal(corev1.ConditionTrue))
	})

	It("of a ReplicaSet without a Deployment are opened", func() {
		w.drained(w.replicaSet(nil))

		w.reconcile()

		Expect(w.gate()).To(Equal(corev1.ConditionTrue))
	})

	It("of a ReplicaSet of another kind are opened", func() {
		rollout := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Deployment"}
		replicaSet := ofKind(&appsv1.ReplicaSet{
			ObjectMeta: w.meta(nil, w.deployment(held)), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template()},
		}, rollout)
		w.drained(create(w, replicaSet))

		w.reconcile()

		Expect(w.gate()).To(Equal(corev1.ConditionTrue))
	})

	It("of pods of other kinds are left alone", func() {
		other := w.meta(nil, w.statefulSet(foreign))
		create(w, ofKind(&corev1.Pod{ObjectMeta: other, Spec: podSpec()}, appsv1beta1.GroupVersion.WithKind("StatefulSet")))

		w.reconcile()

		Expect(w.manager.Writes("")).To(BeEmpty())
	})

	It("of pods without a controller are left alone", func() {
		w.pod(nil)

		w.reconcile()

		Expect(w.manager.Writes("")).To(BeEmpty())
	})

	It("of a pod whose containers are about to be stopped stay as they are", func() {
		pod := w.drained(w.statefulSet(foreign))
		before := pod.DeepCopy()
		record, err := json.Marshal(appsv1beta1.InPlaceUpdateState{
			Revision: "next", UpdateTimestamp: metav1.Now(),
			LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{"main": {ContainerID: "containerd://old", ImageID: "old"}},
		})
		Expect(err).NotTo(HaveOccurred())
		pod.Annotations = map[string]string{appsv1beta1.InPlaceUpdateStateKey: string(record)}
		Expect(w.api.Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())

		result := w.reconcile()

		Expect(w.gate()).To(Equal(corev1.ConditionFalse))
		Expect(result.RequeueAfter).NotTo(BeZero())
		By("running the new one")
		before = pod.DeepCopy()
		pod.Status.ObservedGeneration = pod.Generation
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", ContainerID: "containerd://new", ImageID: "new",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
		Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
		w.reconcile()
		Expect(w.gate()).To(Equal(corev1.ConditionTrue))
	})

	It("of a pod that is gone are no matter", func() {
		Expect(w.reconcile()).To(Equal(ctrl.Result{}))
	})

	It("are opened only of the pod that was looked at", func() {
		pod := w.drained(w.statefulSet(foreign))
		w.manager.Before = func(string, client.Object) error {
			before := pod.DeepCopy()
			pod.Labels["changed"] = "true"
			return w.api.Patch(w.ctx, pod, client.MergeFrom(before))
		}

		result := w.reconcile()

		Expect(w.gate()).To(Equal(corev1.ConditionFalse))
		Expect(result.RequeueAfter).NotTo(BeZero())
		w.manager.Before = nil
		w.reconcile()
		Expect(w.gate()).To(Equal(corev1.ConditionTrue))
	})

	It("of a pod that was deleted meanwhile are no error", func() {
		pod := w.drained(w.statefulSet(foreign))
		w.manager.Before = func(string, client.Object) error {
			return w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0))
		}

		Expect(w.reconcile()).To(Equal(ctrl.Result{}))
	})
})

// blind is a manager whose cache has no workload yet.
type blind struct {
	*stage.Manager
}

func (b blind) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	switch into.(type) {
	case *appsv1.Deployment, *appsv1.StatefulSet, *appsv1.DaemonSet:
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	default:
		return b.Manager.Get(ctx, key, into, options...)
	}
}
