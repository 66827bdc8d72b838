// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// counts are those of the status, by what Kubernetes says of its DaemonSets.
type counts struct {
	Desired, Current, Ready, UpToDate, Available, Unavailable, Misscheduled int32
}

func (w *world) counts() counts {
	GinkgoHelper()
	s := w.status()
	return counts{
		s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberReady, s.UpdatedNumberScheduled,
		s.NumberAvailable, s.NumberUnavailable, s.NumberMisscheduled,
	}
}

var _ = Describe("The status of a DaemonSet", func() {
	It("counts nodes as that of a DaemonSet of Kubernetes", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().MinReadySeconds(30))
		Expect(w.status().ObservedGeneration).To(BeEquivalentTo(-1))
		w.reconcile()
		Expect(w.counts()).To(Equal(counts{Desired: 3, Unavailable: 3}))
		for range 4 {
			w.kubelet.Sync(w.ctx)
			w.reconcile()
		}
		Expect(w.counts()).To(Equal(counts{Desired: 3, Current: 3, Ready: 3, UpToDate: 3, Unavailable: 3}), "not for 30 seconds yet")
		w.clock.Step(time.Minute)
		w.reconcile()
		Expect(w.counts()).To(Equal(counts{Desired: 3, Current: 3, Ready: 3, UpToDate: 3, Available: 3}))

		By("a container that is not ready")
		sick := w.on("node-1").Name
		w.kubelet.Unready[sick] = true
		w.kubelet.Sync(w.ctx)
		w.kubelet.Sync(w.ctx)
		// The kubelet reports containers again only when it does something.
		w.changePodStatus(sick, func(status *corev1.PodStatus) {
			for i := range status.Conditions {
				if status.Conditions[i].Type == corev1.PodReady {
					status.Conditions[i].Status = corev1.ConditionFalse
				}
			}
		})
		w.reconcile()
		Expect(w.counts()).To(Equal(counts{Desired: 3, Current: 3, Ready: 2, UpToDate: 3, Available: 2, Unavailable: 1}))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("2 of 3 pods are available"))))
		delete(w.kubelet.Unready, sick)
		w.settle()

		By("a node that is not to run a pod, and has one")
		w.taint("node-2", "gpu", corev1.TaintEffectNoSchedule)
		w.settle()
		Expect(w.counts()).To(Equal(counts{Desired: 2, Current: 2, Ready: 2, UpToDate: 2, Available: 2, Misscheduled: 1}))

		By("an update that is not to begin")
		w.change(func(set *appsv1beta1.DaemonSet) {
			newImage("nginx:latest")(set)
			partitioned("100%")(set)
		})
		w.settle()
		Expect(w.images()).To(Equal(all("nginx:alpine")))
		Expect(w.counts()).To(Equal(counts{Desired: 2, Current: 2, Ready: 2, Available: 2, Misscheduled: 1}))

		By("that update")
		w.change(partitioned("0"))
		w.settleWith(func() {
			if slices.Contains(slices.Collect(maps.Values(w.images())), "nginx:alpine") {
				Expect(w.status().CurrentRevision).NotTo(Equal(w.status().UpdateRevision))
			}
		})
		Expect(w.images()).To(Equal(all("nginx:latest")), "the pod that is kept is updated, too")
		Expect(w.counts()).To(Equal(counts{Desired: 2, Current: 2, Ready: 2, UpToDate: 2, Available: 2, Misscheduled: 1}))
		Expect(w.status().CurrentRevision).To(Equal(w.status().UpdateRevision))
	})

	It("counts the older one of two pods of a surge", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1"))
		w.setImage("nginx:no-such-tag")
		w.settle()
		Expect(w.pods()).To(HaveLen(4))
		Expect(w.counts()).To(Equal(counts{Desired: 3, Current: 3, Ready: 3, Available: 3}))
	})

	It("calls the update revision daemonSetHash, for clients of v1alpha1", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		old := &unstructured.Unstructured{}
		old.SetGroupVersionKind(schema.GroupVersionKind{Group: "apps.kruise.io", Version: "v1alpha1", Kind: "DaemonSet"})
		Expect(w.live.Get(w.ctx, client.ObjectKeyFromObject(w.set), old)).To(Succeed())
		Expect(old.Object["status"]).To(And(
			HaveKeyWithValue("daemonSetHash", w.on("node-1").Labels[appsv1beta1.ControllerRevisionHashLabel]),
			HaveKeyWithValue("numberReady", int64(3))))
	})

	It("says which pods could not be made, and that it is stalled", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().With(func(set *appsv1beta1.DaemonSet) { set.Spec.Template.Spec.PriorityClassName = "golden" }))
		for range 3 {
			_, _ = w.tryReconcile()
			w.clock.Step(time.Minute)
		}
		Expect(w.counts()).To(Equal(counts{Desired: 3, Unavailable: 3}))
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
		Expect(w.condition(appsv1beta1.ConditionFailedCreatePod)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring("golden"))))
		w.manager.Forget()
		for range 3 {
			_, _ = w.tryReconcile()
			w.clock.Step(time.Minute)
		}
		Expect(w.manager.Writes("patch DaemonSet/status")).To(BeEmpty(), "the names that were tried are not part of what is said")

		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.Template.Spec.PriorityClassName = "" })
		w.clock.Step(time.Hour)
		w.settle()
		w.expectSettled(3)
		Expect(w.condition(appsv1beta1.ConditionFailedCreatePod)).To(BeNil())
	})
})
