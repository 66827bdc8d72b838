// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// loseNode lets the node of a pod answer no more.
func (w *world) loseNode(pod string) {
	w.kubelet.Away[pod] = true
}

// markNotReady sets the condition as the node controller does for the pods of a
// node that does not answer.
func (w *world) markNotReady(name string) {
	GinkgoHelper()
	pod := w.pod(name)
	before := pod.DeepCopy()
	stage.SetPodCondition(pod, corev1.PodReady, false, metav1.NewTime(w.clock.Now()))
	Expect(w.api.Status().Patch(w.ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
}

func (w *world) blockerOf(pod string) appsv1beta1.Blocker {
	GinkgoHelper()
	for _, blocker := range w.status().Blockers {
		if blocker.Pod == pod {
			return blocker
		}
	}
	Fail("no blocker of " + pod)
	return appsv1beta1.Blocker{}
}

// expectLost checks that the status says what is the matter with a pod, and what
// to do.
func (w *world) expectLost(pod string) {
	GinkgoHelper()
	Expect(w.blockerOf(pod)).To(And(
		HaveField("Step", string(inplace.Stuck)), HaveField("Reason", inplace.ReasonTerminationOverdue),
		HaveField("Message", And(ContainSubstring("on node node-1"),
			ContainSubstring("kubectl delete pod "+pod+" -n "+w.namespace+" --force --grace-period=0")))))
	Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(And(
		HaveField("Status", metav1.ConditionTrue), HaveField("Reason", inplace.ReasonTerminationOverdue),
		HaveField("Message", ContainSubstring(pod))))
}

// Pods that a dead node keeps for ever (openkruise/kruise#1099 and #2109,
// kubernetes/kubernetes#55713).
var _ = Describe("A pod whose deletion is overdue", func() {
	It("leaves the rest of the budget to the others", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		uids := w.uids()
		w.loseNode("sample-1")
		w.deletePod("sample-1")
		w.setImage("nginx:latest")
		Expect(w.reconcile().RequeueAfter).To(And(BeNumerically(">", 50*time.Second), BeNumerically("<", 70*time.Second)),
			"when it is overdue, with a grace period of 5 s")
		Expect(w.blockerOf("sample-1")).To(HaveField("Reason", inplace.ReasonTerminating))
		w.settleWith(func() { w.expectReady(1) })
		w.expectLost("sample-1")
		Expect(w.images()).To(Equal(imagesOf("latest", "alpine", "latest")))
		Expect(w.recorder.Events(inplace.ReasonTerminationOverdue)).To(HaveLen(1))
		w.expectNoWrites()

		w.kubelet.Away["sample-1"] = false
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(And(HaveKeyWithValue("sample-0", uids["sample-0"]), HaveKeyWithValue("sample-2", uids["sample-2"])))
	})

	It("takes no second pod out of service, but lets one that is not ready go on", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.loseNode("sample-1")
		w.kubelet.Unready["sample-2"] = true
		w.settle()
		w.deletePod("sample-1")
		w.setImage("nginx:latest")
		w.settle()
		w.expectLost("sample-1")
		Expect(w.images()).To(Equal(imagesOf("alpine", "alpine", "latest")))
		Expect(stage.PodConditionStatus(w.pod("sample-0"), corev1.PodReady)).To(Equal(corev1.ConditionTrue))
		Expect(w.blockerOf("sample-0")).To(HaveField("Message", ContainSubstring("sample-1")))
	})

	It("is named also when it was to go for good, and holds up no creation", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.ScaleStrategy = &appsv1beta1.StatefulSetScaleStrategy{MaxUnavailable: ptr.To(intstr.FromInt32(1))}
		}))
		w.loseNode("sample-2")
		w.scale(2)
		w.settle()
		w.expectLost("sample-2")
		w.deletePod("sample-0")
		w.settle()
		Expect(stage.PodConditionStatus(w.pod("sample-0"), corev1.PodReady)).To(Equal(corev1.ConditionTrue))
		w.kubelet.Away["sample-2"] = false
		w.settle()
		w.expectSettled(2)
	})

	It("holds up all others with OrderedReady, and says so", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().OrderedReady())
		w.loseNode("sample-1")
		w.deletePod("sample-1")
		w.scale(4)
		w.settle()
		w.expectLost("sample-1")
		Expect(w.blockerOf("sample-1").Message).To(ContainSubstring("podManagementPolicy OrderedReady"))
		Expect(w.podNames()).NotTo(ContainElement("sample-3"))
		w.kubelet.Away["sample-1"] = false
		w.settle()
		w.expectSettled(4)
	})
})

var _ = Describe("A node that does not answer", func() {
	It("keeps its place in the budget and no more, and is named", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxUnavailable(2))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.reconcile() // sample-2 and sample-1 are taken out of service
		w.loseNode("sample-2")
		w.settle()
		Expect(w.blockerOf("sample-2")).To(And(HaveField("Reason", inplace.ReasonStillReady), HaveField("Message", ContainSubstring("on node node-1"))))
		Expect(w.images()).To(Equal(imagesOf("latest", "latest", "alpine")))

		w.markNotReady("sample-2")
		w.settle()
		Expect(w.blockerOf("sample-2")).To(And(HaveField("Reason", inplace.ReasonNotObserved), HaveField("Message", ContainSubstring("on node node-1"))))
		Expect(w.uids()).To(Equal(uids), "nothing is deleted for that")
		w.kubelet.Away["sample-2"] = false
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("is named for pods that it makes not ready, which are left alone", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.loseNode("sample-1")
		w.markNotReady("sample-1")
		w.settle()
		Expect(w.blockerOf("sample-1")).To(And(HaveField("Reason", inplace.ReasonPodNotReady),
			HaveField("Message", "its containers and gates are ready; the kubelet on node node-1 has not reported the pod ready")))
		Expect(w.uids()).To(Equal(uids))
		w.expectNoWrites()
	})
})
