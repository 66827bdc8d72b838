// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("A rollout", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("goes from the highest ordinal down, within the budget", short.Spec, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before, seen := pods(ctx, set), watchPods(ctx, namespace)
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)

		var order []string
		unready := sets.New[string]()
		for _, pod := range seen() {
			unready.Insert(pod.Name)
			if podutils.IsPodReady(pod) {
				unready.Delete(pod.Name)
			}
			Expect(len(unready)).To(BeNumerically("<=", 1), "more pods are out of service than maxUnavailable: %v", unready)
			if pod.Spec.Containers[0].Image == nginxLatest && !slices.Contains(order, pod.Name) {
				order = append(order, pod.Name)
			}
		}
		Expect(order).To(Equal([]string{"sample-2", "sample-1", "sample-0"}))
		expectInPlace(before, pods(ctx, set), 1)
	})

	It("stops at the partition, and goes on when it is lowered", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).Partition(2))
		before := pods(ctx, set)
		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.UpdatedReadyReplicas).To(BeEquivalentTo(1))
			g.Expect(set.Status.ObservedGeneration).To(Equal(set.Generation))
			ready := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionReady)
			g.Expect(ready).To(HaveField("Reason", appsv1beta1.ReasonPartitionReached))
		})
		Consistently(ctx, func(ctx context.Context) []string { return images(pods(ctx, set)) }).
			WithTimeout(5 * time.Second).Should(Equal([]string{nginxAlpine, nginxAlpine, nginxLatest}))
		Expect(set.Status.CurrentRevision).NotTo(Equal(set.Status.UpdateRevision))

		// A pod below the partition comes back as it was.
		Expect(api.Delete(ctx, getPod(ctx, set, 0))).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			found := pods(ctx, set)
			g.Expect(found).To(HaveLen(3))
			g.Expect(found[0].UID).NotTo(Equal(before[0].UID))
			g.Expect(found[0].Ready).To(BeTrue())
			g.Expect(found[0].Image).To(Equal(nginxAlpine))
		}).Should(Succeed())

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](0)
		})
		waitSettled(ctx, set)
		expectInPlace(before[1:], pods(ctx, set)[1:], 1)
	})

	It("waits while it is paused", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before := pods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = nginxLatest
			s.Spec.UpdateStrategy.RollingUpdate.Paused = true
		})
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			progressing := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionProgressing)
			g.Expect(progressing).To(HaveField("Reason", appsv1beta1.ReasonPaused))
		})
		Consistently(ctx, func(ctx context.Context) []string { return images(pods(ctx, set)) }).
			WithTimeout(3 * time.Second).Should(HaveEach(nginxAlpine))
		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = false })
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
	})

	It("recreates what cannot go in place, and names the field", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before := pods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		})
		waitSettled(ctx, set)
		for i, p := range pods(ctx, set) {
			Expect(p.UID).NotTo(Equal(before[i].UID))
		}
		Expect(set.Status.Recreated).To(BeEquivalentTo(3))
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonRecreating, "spec.containers[main].env")
	})

	It("leaves alone what InPlaceOnly cannot change, and names the field", short.Spec, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).Policy(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
		before := pods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		})
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			stalled := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)
			g.Expect(stalled).To(HaveField("Status", BeEquivalentTo("True")))
			g.Expect(stalled.Message).To(ContainSubstring("spec.containers[main].env"))
		})
		expectEvent(ctx, namespace, "StatefulSet", inplace.ReasonFieldImmutable, "spec.containers[main].env")
		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Env = nil })
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 0)
	})

	It("creates and deletes in order under OrderedReady", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).OrderedReady())
		found := pods(ctx, set)
		Expect(found[1].Created.Time).To(BeTemporally(">=", found[0].Created.Time))
		Expect(found[2].Created.Time).To(BeTemporally(">=", found[1].Created.Time))
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		expectInPlace(found, pods(ctx, set), 1)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](1) })
		waitSettled(ctx, set)
		Eventually(ctx, func(ctx context.Context) []observe.Pod { return pods(ctx, set) }).Should(HaveLen(1))
	})
})

func images(found []observe.Pod) []string {
	var all []string
	for _, p := range found {
		all = append(all, p.Image)
	}
	return all
}
