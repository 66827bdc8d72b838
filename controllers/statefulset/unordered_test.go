// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"fmt"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// unordered is a set of four pods whose updates go by the strategy, two at a
// time.
func unordered(strategy *appsv1beta1.UpdatePriorityStrategy) *builders.StatefulSetBuilder {
	return reference().Replicas(4).MaxUnavailable(2).With(func(set *appsv1beta1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &appsv1beta1.UnorderedUpdateStrategy{PriorityStrategy: strategy}
	})
}

// byTier updates pods of tier edge first, then those of tier core, then the rest.
func byTier() *appsv1beta1.UpdatePriorityStrategy {
	term := func(weight int32, tier string) appsv1beta1.UpdatePriorityWeightTerm {
		return appsv1beta1.UpdatePriorityWeightTerm{
			Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}},
		}
	}
	return &appsv1beta1.UpdatePriorityStrategy{WeightPriority: []appsv1beta1.UpdatePriorityWeightTerm{term(20, "core"), term(60, "edge")}}
}

// primaryLast updates the pod with the role of the primary last.
func primaryLast() *appsv1beta1.UpdatePriorityStrategy {
	others := metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: "role", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"primary"}},
	}}
	return &appsv1beta1.UpdatePriorityStrategy{WeightPriority: []appsv1beta1.UpdatePriorityWeightTerm{{Weight: 100, MatchSelector: others}}}
}

// expectAtMost checks that no more pods than max are at the update revision
// (invariant 2), and that no more than two are not ready.
func (w *world) expectAtMost(updated int) {
	GinkgoHelper()
	at, unready := 0, 4
	for _, pod := range w.pods() {
		if pod.Labels["controller-revision-hash"] == w.status().UpdateRevision {
			at++
		}
		if stage.PodConditionStatus(pod, corev1.PodReady) == corev1.ConditionTrue {
			unready--
		}
	}
	Expect(at).To(BeNumerically("<=", updated), "pods at the update revision")
	Expect(unready).To(BeNumerically("<=", 2), "pods not ready")
}

func imagesOf(images ...string) map[string]string {
	all := map[string]string{}
	for i, image := range images {
		all[fmt.Sprintf("sample-%d", i)] = "nginx:" + image
	}
	return all
}

var _ = Describe("An unordered update", func() {
	It("goes by the weights, within the budget", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(unordered(byTier()))
		w.label("sample-0", "tier", "edge")
		w.label("sample-1", "tier", "core")
		w.label("sample-2", "tier", "edge")
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settleWith(func() { w.expectAtMost(4) })
		w.expectSettled(4)
		order := w.manager.Writes("patch Pod ")
		Expect(order[:2]).To(ConsistOf("patch Pod sample-2", "patch Pod sample-0"))
		Expect(order[2:]).To(ConsistOf("patch Pod sample-1", "patch Pod sample-3"))
	})

	It("goes by the numbers of labels, one after the other", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(unordered(&appsv1beta1.UpdatePriorityStrategy{
			OrderPriority: []appsv1beta1.UpdatePriorityOrderTerm{{OrderedKey: "batch"}},
		}).MaxUnavailable(1))
		w.label("sample-3", "batch", "b-9")
		w.label("sample-0", "batch", "a-10")
		w.label("sample-1", "batch", "none")
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.manager.Writes("patch Pod ")).To(Equal([]string{
			"patch Pod sample-0", "patch Pod sample-3", "patch Pod sample-1", "patch Pod sample-2",
		}))
	})

	It("follows a role that moves in the middle, also with OrderedReady", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(unordered(primaryLast()).Replicas(3).MaxUnavailable(1).OrderedReady())
		w.label("sample-2", "role", "primary")
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settleWith(func() {
			if slices.Contains(w.manager.Writes("patch Pod "), "patch Pod sample-1") && w.pod("sample-2").Labels["role"] == "primary" {
				w.label("sample-2", "role", "replica")
				w.label("sample-0", "role", "primary")
			}
		})
		w.expectSettled(3)
		Expect(w.manager.Writes("patch Pod ")).To(Equal([]string{"patch Pod sample-1", "patch Pod sample-2", "patch Pod sample-0"}))
	})

	It("without priorities begins with what is not available", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(unordered(nil).Partition(3))
		w.kubelet.Unready["sample-1"] = true
		w.settle()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(imagesOf("alpine", "latest", "alpine", "alpine")))
	})

	It("keeps as many pods as the partition says, and brings back what is deleted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(unordered(byTier()).Partition(2))
		w.label("sample-0", "tier", "edge")
		w.label("sample-1", "tier", "core")
		look := func() { w.expectAtMost(2) }
		w.setImage("nginx:latest")
		w.settleWith(look)
		half := imagesOf("latest", "latest", "alpine", "alpine")
		Expect(w.images()).To(Equal(half))
		Expect(w.refresh()).To(readyIs(metav1.ConditionTrue, appsv1beta1.ReasonPartitionReached))
		Expect(w.status()).To(And(HaveField("CurrentReplicas", int32(2)), HaveField("UpdatedReplicas", int32(2))))

		w.deletePod("sample-0")
		w.settleWith(func() { look(); Expect(w.images()).NotTo(HaveKeyWithValue("sample-3", "nginx:latest")) })
		w.deletePod("sample-3")
		w.settleWith(look)
		Expect(w.images()).To(Equal(half), "each comes back as it was")

		w.change(setPartition(4))
		w.settleWith(look)
		Expect(w.images()).To(Equal(half), "nothing goes back")
		w.expectNoWrites()
		w.change(setPartition(1))
		w.settleWith(func() { w.expectAtMost(3) })
		Expect(w.images()).To(Equal(imagesOf("latest", "latest", "alpine", "latest")))
		w.change(setPartition(0))
		w.settle()
		w.expectSettled(4)
	})

	It("counts pods that are made again in the middle", func(ctx context.Context) {
		for steps := range 6 {
			w := newWorld(ctx)
			w.create(unordered(byTier()).Partition(2))
			w.label("sample-1", "tier", "edge")
			w.setImage("nginx:latest")
			for range steps {
				w.reconcile()
				w.kubelet.Sync(w.ctx)
			}
			w.deletePod("sample-0")
			w.settleWith(func() {
				at := 0
				for _, image := range w.images() {
					if image == "nginx:latest" {
						at++
					}
				}
				Expect(at).To(BeNumerically("<=", 2), "after %d steps", steps)
			})
			Expect(w.images()).To(HaveKeyWithValue("sample-1", "nginx:latest"), "after %d steps", steps)
			Expect(w.refresh()).To(readyIs(metav1.ConditionTrue, appsv1beta1.ReasonPartitionReached))
			w.change(setPartition(0))
			w.settle()
			w.expectSettled(4)
		}
	})

	It("lets a canary be taken back, or replaced by the next one", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(unordered(byTier()).Partition(3))
		w.label("sample-1", "tier", "edge")
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(imagesOf("alpine", "latest", "alpine", "alpine")))
		w.label("sample-0", "tier", "edge")
		w.label("sample-1", "tier", "none")
		w.setImage("nginx:third")
		w.settle()
		Expect(w.images()).To(Equal(imagesOf("alpine", "third", "alpine", "alpine")), "no pod stays at the one between")
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(4)
		Expect(w.images()).To(Equal(imagesOf("alpine", "alpine", "alpine", "alpine")))
	})
})
