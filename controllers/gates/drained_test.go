// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/stage"
)

// labeled creates the pod of an owner, without a readiness gate, that is drained by those
// in the list. Its containers are ready.
func (w *world) labeled(owner client.Object, drainers string) *corev1.Pod {
	GinkgoHelper()
	meta := w.meta(map[string]string{"app": "sample", appsv1beta1.DrainedLabel: drainers}, owner)
	pod := create(w, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}}})
	before := pod.DeepCopy()
	stage.SetPodCondition(pod, corev1.PodReady, false, metav1.Now())
	stage.SetPodCondition(pod, corev1.ContainersReady, true, metav1.Now())
	Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
	return pod
}

// drainers returns who drains the pod.
func (w *world) drainers() string {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(w.live.Reader.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "sample"}, pod)).To(Succeed())
	return pod.Labels[appsv1beta1.DrainedLabel]
}

var _ = Describe("drains", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) { w = newWorld(ctx) })

	kruise := func() client.Object {
		return create(w, builders.StatefulSet(w.namespace, "sample", "nginx").Build())
	}

	DescribeTable("of pods that nothing updates are ended", func(owner func() client.Object, drainers string) {
		w.labeled(owner(), drainers)

		w.reconcile()

		Expect(w.drainers()).To(BeEmpty())
		w.reconcile()
		Expect(w.manager.Writes("")).To(ConsistOf("patch Pod/status sample"))
	},
		Entry("of a Deployment at rest", func() client.Object { return w.replicaSet(w.deployment(atRest)) }, "update"),
		Entry("of a StatefulSet without the label", func() client.Object { return w.statefulSet(foreign) }, "update"),
		Entry("of a DaemonSet, by an unknown client", func() client.Object { return w.daemonSet(foreign) }, "me"),
		Entry("of no owner", func() client.Object { return nil }, "update"),
		Entry("of another kind", func() client.Object {
			return &metav1.PartialObjectMetadata{
				TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "sample", UID: "job"},
			}
		}, "me.update"),
		Entry("of a StatefulSet of apps.kruise.io that is gone", func() client.Object {
			gone := builders.StatefulSet(w.namespace, "sample", "nginx").Build()
			gone.UID = "gone"
			return gone
		}, "update"),
		Entry("of a CloneSet of apps.kruise.io in whose place there is another", func() client.Object {
			create(w, builders.CloneSet(w.namespace, "sample", "nginx").Build())
			gone := builders.CloneSet(w.namespace, "sample", "nginx").Build()
			gone.UID = "gone"
			return gone
		}, "update"),
	)

	It("of pods of a held workload are left to its controller", func() {
		w.labeled(w.statefulSet(held), "update")

		w.reconcile()

		Expect(w.drainers()).To(Equal("update"))
	})

	It("of pods of our own kinds are left to their controllers, but for what others began", func() {
		w.labeled(kruise(), "me.update")

		w.reconcile()
		w.reconcile()

		Expect(w.drainers()).To(Equal("update"))
		Expect(w.manager.Writes("")).To(ConsistOf("patch Pod/status sample"))
	})

	It("of a pod that a ContainerRecreateRequest asks are left to its controller, where there is one", func() {
		pod := w.labeled(nil, "update")
		before := pod.DeepCopy()
		pod.Annotations = map[string]string{appsv1beta1.RecreateRequestAnnotation: `{"name":"again","uid":"1","containers":["main"]}`}
		Expect(w.api.Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
		w.reconciler.ServesRequests = true

		w.reconcile()
		Expect(w.drainers()).To(Equal("update"))

		w.reconciler.ServesRequests = false
		w.reconcile()
		Expect(w.drainers()).To(BeEmpty())
	})

	It("of a pod whose containers are about to be stopped are ended when they run again", func() {
		pod := w.labeled(nil, "update")
		record, err := json.Marshal(appsv1beta1.InPlaceUpdateState{
			Revision: "next", UpdateTimestamp: metav1.Now(),
			LastContainerStatuses: map[string]appsv1beta1.InPlaceUpdateContainerStatus{"main": {ContainerID: "containerd://old", ImageID: "old"}},
		})
		Expect(err).NotTo(HaveOccurred())
		before := pod.DeepCopy()
		pod.Annotations = map[string]string{appsv1beta1.InPlaceUpdateStateKey: string(record)}
		Expect(w.api.Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())

		Expect(w.reconcile().RequeueAfter).NotTo(BeZero())
		Expect(w.drainers()).To(Equal("update"))

		before = pod.DeepCopy()
		pod.Status.ObservedGeneration = pod.Generation
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
			Name: "main", ContainerID: "containerd://new", ImageID: "new",
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}},
		}}
		Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
		w.reconcile()
		Expect(w.drainers()).To(BeEmpty())
	})

	It("are ended only of the pod that was looked at", func() {
		pod := w.labeled(nil, "update")
		w.manager.Before = func(string, client.Object) error {
			return w.api.Patch(w.ctx, pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"true"}}}`)))
		}

		result := w.reconcile()

		Expect(w.drainers()).To(Equal("update"))
		Expect(result.RequeueAfter).NotTo(BeZero())
		w.manager.Before = nil
		w.reconcile()
		Expect(w.drainers()).To(BeEmpty())
	})

	It("of a pod that has ended are no matter", func() {
		pod := w.labeled(nil, "update")
		before := pod.DeepCopy()
		pod.Status.Phase = corev1.PodFailed
		Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())

		Expect(w.reconcile()).To(Equal(ctrl.Result{}))
		Expect(w.manager.Writes("")).To(BeEmpty())
	})

	It("of a pod that was deleted meanwhile are no error", func() {
		pod := w.labeled(nil, "update")
		w.manager.Before = func(string, client.Object) error { return w.api.Delete(w.ctx, pod, client.GracePeriodSeconds(0)) }

		Expect(w.reconcile()).To(Equal(ctrl.Result{}))
	})
})
