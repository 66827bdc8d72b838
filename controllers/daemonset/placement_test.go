// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("A DaemonSet", func() {
	It("runs a pod on each node, also on one that comes later, and makes one again that is deleted", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.expectSettled(3)
		Expect(w.images()).To(Equal(all("nginx:alpine")))
		w.expectNoWrites()

		w.addNode("node-4", nil)
		w.settle()
		w.expectSettled(4)

		before := w.on("node-2")
		Expect(w.api.Delete(w.ctx, before)).To(Succeed())
		w.reconcile()
		Expect(w.pods()).To(HaveLen(4), "the next pod of a node is made when the one before is gone")
		w.settle()
		w.expectSettled(4)
		Expect(w.on("node-2").UID).NotTo(Equal(before.UID))
	})

	It("runs on the nodes that its template selects now", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().NodeSelector("disk", "fast"))
		w.expectSettled(0)

		w.label("node-2", "disk", "fast")
		w.settle()
		w.expectSettled(1)
		w.on("node-2")

		w.label("node-2", "disk", "slow")
		w.settle()
		w.expectSettled(0)

		w.change(func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "slow"}
		})
		w.settle()
		w.expectSettled(1)
		w.on("node-2")
	})

	It("runs on nodes in trouble, and keeps its pods there", func(ctx context.Context) {
		for key, effect := range map[string]corev1.TaintEffect{
			corev1.TaintNodeNotReady: corev1.TaintEffectNoExecute, corev1.TaintNodeUnreachable: corev1.TaintEffectNoExecute,
			corev1.TaintNodeDiskPressure: corev1.TaintEffectNoSchedule, corev1.TaintNodeMemoryPressure: corev1.TaintEffectNoSchedule,
			corev1.TaintNodePIDPressure: corev1.TaintEffectNoSchedule, corev1.TaintNodeUnschedulable: corev1.TaintEffectNoSchedule,
		} {
			By(key)
			w := newWorld(ctx, "node-1")
			w.taint("node-1", key, effect)
			w.create(reference())
			w.expectSettled(1)
			Expect(w.on("node-1").Spec.Tolerations).To(ContainElement(
				corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect}), "without an end, so that nothing evicts it")
			Expect(w.refresh().Spec.Template.Spec.Tolerations).To(BeEmpty())
			w.expectNoWrites()
		}
	})

	It("makes no pod where a taint keeps new ones away, and keeps the one that is there", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.taint("node-3", "gpu", corev1.TaintEffectNoSchedule)
		w.settle()
		Expect(w.uids()).To(Equal(uids))
		status := w.status()
		Expect([]int32{status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.NumberMisscheduled}).To(Equal([]int32{2, 2, 1}))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))

		Expect(w.api.Delete(w.ctx, w.on("node-3"))).To(Succeed())
		w.settle()
		w.expectSettled(2)

		w.taint("node-2", "gpu", corev1.TaintEffectNoExecute)
		w.settle()
		w.expectSettled(1)
		Expect(w.uids()).To(HaveKeyWithValue("node-1", uids["node-1"]))
	})

	It("leaves the pods of a node that is gone to the garbage collector of pods", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		lost := w.on("node-3")
		w.removeNode("node-3")
		w.settle()
		Expect(w.pods()).To(HaveKey(lost.Name))
		Expect(w.manager.Writes("delete")).To(BeEmpty())
		Expect(w.status().DesiredNumberScheduled).To(BeEquivalentTo(2))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Status", metav1.ConditionFalse))

		Expect(w.api.Delete(w.ctx, lost)).To(Succeed())
		w.settle()
		w.expectSettled(2)
	})

	It("takes back a pod that no scheduler has bound, when its node is gone", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference())
		w.reconcile()
		Expect(w.pods()).NotTo(BeEmpty())
		w.removeNode("node-1")
		w.reconcile()
		for _, pod := range w.active() {
			Expect(pod.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values).NotTo(
				Equal([]string{"node-1"}))
		}
		w.settle()
		w.expectSettled(2)
	})
})

var _ = Describe("A pod of a DaemonSet", func() {
	It("is replaced when it has failed, later each time", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		others := w.uids()
		fails := func() {
			w.kubelet.Evict(w.ctx, w.on("node-2"))
		}
		fails()
		w.settle()
		w.expectSettled(3)

		var waits []time.Duration
		for range 4 {
			fails()
			failed, began := w.on("node-2").UID, w.clock.Now()
			for w.uids()["node-2"] == failed || w.uids()["node-2"] == "" {
				w.reconcile()
				w.clock.Step(time.Second)
				w.kubelet.Sync(w.ctx)
			}
			waits = append(waits, w.clock.Since(began))
		}
		Expect(slices.IsSorted(waits)).To(BeTrue(), "%v", waits)
		Expect(waits[3]).To(BeNumerically(">=", 3*waits[0]), "%v", waits)
		w.settle()
		w.expectSettled(3)
		for _, node := range []string{"node-1", "node-3"} {
			Expect(w.uids()).To(HaveKeyWithValue(node, others[node]))
		}
	})

	It("is replaced when it has succeeded", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		ended := w.on("node-2")
		w.changePodStatus(ended.Name, func(status *corev1.PodStatus) { status.Phase = corev1.PodSucceeded })
		w.settle()
		w.expectSettled(3)
		Expect(w.on("node-2").UID).NotTo(Equal(ended.UID))
	})

	It("stays if it is the oldest of its node", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		first := w.on("node-1")
		for _, name := range []string{"aaa", "zzz"} {
			second := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: w.namespace, Labels: first.Labels, OwnerReferences: first.OwnerReferences,
			}, Spec: *first.Spec.DeepCopy()}
			awaitNextSecond(first.CreationTimestamp.Time)
			Expect(w.api.Create(w.ctx, second)).To(Succeed())
			w.kubelet.Sync(w.ctx)
			w.settle()
			w.expectSettled(3)
			Expect(w.uids()).To(Equal(uids), name)
		}
	})

	It("waits on a node that is not ready, and keeps no other from its update", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.changeNodeReady("node-3", corev1.ConditionUnknown)
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:latest", "node-2": "nginx:latest", "node-3": "nginx:alpine"}))
		Expect(w.status().Blockers).To(ConsistOf(HaveField("Reason", "NodeUnavailable")))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Status", metav1.ConditionFalse))
		Expect(w.reconcile()).To(Equal(ctrl.Result{}), "the node is an event")

		w.changeNodeReady("node-3", corev1.ConditionTrue)
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})
})

// awaitNextSecond waits until objects that are made are younger than one that was made then: the
// API server counts in seconds.
func awaitNextSecond(then time.Time) {
	GinkgoHelper()
	Eventually(time.Now).Should(BeTemporally(">=", then.Add(time.Second)))
}
