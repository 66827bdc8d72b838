// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

// partitioned keeps a part of the pods at the old revision.
func partitioned(value string) func(*appsv1beta1.DaemonSet) {
	return func(set *appsv1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.Parse(value))
	}
}

// selecting updates the pods of the nodes with a label only.
func selecting(key, value string) func(*appsv1beta1.DaemonSet) {
	return func(set *appsv1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

var _ = Describe("A partition of a DaemonSet", func() {
	It("keeps the pods of the nodes with the lowest names, and moves none back when it grows", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("2"))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:alpine", "node-3": "nginx:latest"}))
		status := w.status()
		Expect(status.UpdatedNumberScheduled).To(BeEquivalentTo(1))
		Expect(status.CurrentRevision).NotTo(Equal(status.UpdateRevision))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", appsv1beta1.ReasonPartitionReached),
			HaveField("Message", "partition keeps 2 pods at their revision")))
		w.expectNoWrites()

		w.change(partitioned("1"))
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:latest", "node-3": "nginx:latest"}))

		w.change(partitioned("3"))
		w.settle()
		w.expectNoWrites()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:latest", "node-3": "nginx:latest"}))

		w.change(partitioned("0"))
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("is rounded down as a percentage", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("66%"))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:latest", "node-3": "nginx:latest"}))
	})

	It("keeps pods that are recreated, too", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("2"))
		before := w.uids()
		w.change(newEnv)
		w.settle()
		after := w.uids()
		Expect(after["node-3"]).NotTo(Equal(before["node-3"]))
		delete(before, "node-3")
		delete(after, "node-3")
		Expect(after).To(Equal(before))
	})

	It("lets a node that comes later, or has lost its pod, have the new revision", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("3"))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(all("nginx:alpine")))
		w.addNode("node-0", nil)
		Expect(w.api.Delete(w.ctx, w.on("node-2"))).To(Succeed())
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{
			"node-0": "nginx:latest", "node-1": "nginx:alpine", "node-2": "nginx:latest", "node-3": "nginx:alpine",
		}))
		w.expectNoWrites()
	})

	It("holds where the status does not say what its pods come from", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("2"))
		uids, first := w.uids(), w.status().UpdateRevision
		w.setImage("nginx:latest")
		w.settle()
		before := w.refresh().DeepCopy()
		w.set.Status.CurrentRevision = ""
		Expect(w.api.Status().Patch(w.ctx, w.set, client.MergeFrom(before))).To(Succeed())

		w.startManager(shared)
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:alpine", "node-3": "nginx:latest"}))
		Expect(w.status().CurrentRevision).To(Equal(first))
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("keeps no pod from going back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition("2"))
		uids, first := w.uids(), w.status().UpdateRevision
		w.setImage("nginx:latest")
		w.settle()
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(Equal(all("nginx:alpine")))
		Expect(w.uids()).To(Equal(uids))
		Expect(w.status().UpdateRevision).To(Equal(first))
	})
})

var _ = Describe("A node selector of the update of a DaemonSet", func() {
	It("updates the pods of its nodes, and moves none back that has lost the label", func(ctx context.Context) {
		w := newWorld(ctx)
		w.label("node-1", "canary", "yes")
		w.create(reference().With(selecting("canary", "yes")))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:latest", "node-2": "nginx:alpine", "node-3": "nginx:alpine"}))
		w.expectNoWrites()

		w.label("node-1", "canary", "no")
		w.label("node-3", "canary", "yes")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:latest", "node-2": "nginx:alpine", "node-3": "nginx:latest"}))
		w.expectNoWrites()

		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Selector = nil })
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("goes together with a partition", func(ctx context.Context) {
		w := newWorld(ctx)
		w.label("node-1", "canary", "yes")
		w.label("node-2", "canary", "yes")
		w.create(reference().Partition("2").With(selecting("canary", "yes")))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:latest", "node-3": "nginx:alpine"}))
	})
})

var _ = Describe("A DaemonSet whose new nodes follow the partition", func() {
	It("makes pods on as many nodes as the partition leaves, the lowest names first", func(ctx context.Context) {
		var nodes []string
		for i := range 10 {
			nodes = append(nodes, fmt.Sprintf("node-%d", i))
		}
		w := newWorld(ctx, nodes...)
		w.create(reference().Partition("10").With(func(set *appsv1beta1.DaemonSet) {
			set.Spec.ScaleStrategy = &appsv1beta1.DaemonSetScaleStrategy{PartitionedScaling: true}
		}))
		Expect(w.images()).To(BeEmpty())
		Expect(w.status().DesiredNumberScheduled).To(BeEquivalentTo(10))
		w.expectNoWrites()

		w.change(partitioned("9"))
		w.settle()
		Expect(w.images()).To(Equal(same("nginx:alpine", "node-0")))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(And(HaveField("Status", metav1.ConditionTrue),
			HaveField("Reason", appsv1beta1.ReasonPartitionReached), HaveField("Message", "partition keeps 9 of the nodes without a pod")))
		w.expectNoWrites()

		w.change(partitioned("0"))
		w.settle()
		w.expectSettled(10)
	})
})
