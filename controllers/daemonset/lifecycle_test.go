// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
)

const holdLabel = "example.io/hold"

// hooked gives the pods a label by which a hook holds them before their deletion.
func hooked(set *appsv1beta1.DaemonSet) {
	set.Spec.Template.Labels = map[string]string{"app": "sample", holdLabel: "yes"}
	set.Spec.Lifecycle = &appsv1beta1.Lifecycle{
		PreDelete: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{holdLabel: "yes"}},
	}
}

// preparing returns the nodes whose pods are held before their deletion.
func (w *world) preparing() []string {
	GinkgoHelper()
	var nodes []string
	for _, pod := range w.active() {
		if pod.Labels[appsv1beta1.LifecycleStateKey] == string(appsv1beta1.LifecycleStatePreparingDelete) {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	slices.Sort(nodes)
	return nodes
}

func (w *world) release(nodes ...string) {
	GinkgoHelper()
	for _, node := range nodes {
		w.changePod(w.on(node).Name, func(pod *corev1.Pod) { delete(pod.Labels, holdLabel) })
	}
}

var _ = Describe("A pod of a DaemonSet that a hook holds before its deletion", func() {
	It("is recreated when the hook releases it, and the next one is held after that", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked))
		before := w.uids()
		w.change(newEnv)
		for i, node := range []string{"node-3", "node-2", "node-1"} {
			w.settle()
			Expect(w.preparing()).To(Equal([]string{node}), "maxUnavailable is 1")
			Expect(w.manager.Writes("delete Pod")).To(HaveLen(i))
			Expect(w.uids()).To(HaveKeyWithValue(node, before[node]))
			Expect(w.status().Blockers).To(ContainElement(And(
				HaveField("Pod", w.on(node).Name), HaveField("Reason", inplace.ReasonPreDeleteHook))))
			w.release(node)
		}
		w.settle()
		w.expectSettled(3)
		Expect(w.manager.Writes("delete Pod")).To(HaveLen(3))
	})

	It("stays on a node that is not selected any more, and serves again when it is", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		for _, node := range []string{"node-1", "node-2", "node-3"} {
			w.label(node, "disk", "fast")
		}
		w.create(reference().NodeSelector("disk", "fast").With(hooked))
		uids := w.uids()
		w.label("node-2", "disk", "slow")
		w.settle()
		Expect(w.preparing()).To(Equal([]string{"node-2"}))
		Expect(w.manager.Writes("delete")).To(BeEmpty())
		w.expectNoWrites()

		w.label("node-2", "disk", "fast")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.on("node-2").Labels).To(HaveKeyWithValue(appsv1beta1.LifecycleStateKey, string(appsv1beta1.LifecycleStateNormal)))

		w.label("node-2", "disk", "slow")
		w.settle()
		w.release("node-2")
		w.settle()
		w.expectSettled(2)
	})

	It("is held on all nodes that are not selected any more, whatever maxUnavailable is", func(ctx context.Context) {
		w := newWorld(ctx)
		for _, node := range []string{"node-1", "node-2", "node-3"} {
			w.label(node, "disk", "fast")
		}
		w.create(reference().NodeSelector("disk", "fast").With(hooked))
		w.label("node-1", "disk", "slow")
		w.label("node-2", "disk", "slow")
		w.settle()
		Expect(w.preparing()).To(Equal([]string{"node-1", "node-2"}))
	})

	It("is updated in place without being held", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settleWith(func() { Expect(w.preparing()).To(BeEmpty()) })
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("serves beside the new one with a surge, and goes when the hook releases it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1").With(hooked))
		old := w.uids()
		w.setImage("nginx:latest")
		for _, node := range []string{"node-3", "node-2", "node-1"} {
			w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 3)) })
			Expect(w.preparing()).To(Equal([]string{node}))
			Expect(w.crowded()).To(Equal(map[string]int{node: 2}))
			for name, pod := range w.active() {
				if pod.UID == old[node] {
					w.changePod(name, func(pod *corev1.Pod) { delete(pod.Labels, holdLabel) })
				}
			}
		}
		w.settle()
		w.expectSettled(3)
	})

	It("has failed, and is replaced when the hook releases it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked))
		failed := w.on("node-2")
		w.kubelet.Evict(w.ctx, failed)
		w.settle()
		Expect(w.preparing()).To(Equal([]string{"node-2"}))
		Expect(w.uids()).To(HaveKeyWithValue("node-2", failed.UID))
		w.release("node-2")
		w.settle()
		w.expectSettled(3)
	})

	It("is of a set that has no hook any more", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(hooked))
		w.change(newEnv)
		w.settle()
		Expect(w.preparing()).To(HaveLen(1))
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.Lifecycle = nil })
		w.settle()
		w.expectSettled(3)
	})
})
