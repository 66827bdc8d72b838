// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("An update in place", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("changes the image and keeps every pod", short.Spec, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).MaxUnavailable(2))
		before := pods(ctx, set)
		Expect(observe.Pages(ctx, kube, namespace, before)).To(Succeed())

		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)

		after := pods(ctx, set)
		expectInPlace(before, after, 1)
		Expect(observe.Pages(ctx, kube, namespace, after)).To(Succeed())
		for i := range after {
			Expect(after[i].Page).NotTo(Equal(before[i].Page))
		}
		Expect(set.Status.InPlaceUpdated).To(BeEquivalentTo(3))
		Expect(set.Status.Recreated).To(BeZero())
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonUpdatingPodInPlace, "nginx:alpine to nginx:latest")
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonSuccessfulUpdatePodInPlace, "back in service")
	})

	It("changes labels and annotations without a restart", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before := pods(ctx, set)

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			metav1.SetMetaDataAnnotation(&s.Spec.Template.ObjectMeta, "example.io/config", "2")
			metav1.SetMetaDataLabel(&s.Spec.Template.ObjectMeta, "tier", "backend")
		})
		waitSettled(ctx, set)

		expectInPlace(before, pods(ctx, set), 0)
		pod := getPod(ctx, set, 0)
		Expect(pod.Annotations).To(HaveKeyWithValue("example.io/config", "2"))
		Expect(pod.Labels).To(HaveKeyWithValue("tier", "backend"))
	})

	// Two tags of one digest: neither imageID nor status.image tells them apart.
	It("completes when the new tag has the digest of the old one", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxLatest).MaxUnavailable(3))
		before := pods(ctx, set)
		imageID := getPod(ctx, set, 0).Status.ContainerStatuses[0].ImageID

		setImage(ctx, set, nginxStable)
		waitSettled(ctx, set)

		expectInPlace(before, pods(ctx, set), 1)
		Expect(getPod(ctx, set, 0).Status.ContainerStatuses[0].ImageID).To(Equal(imageID), "the lab serves two digests")
	})

	It("comes back from an image that does not exist", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).MaxUnavailable(2).With(unpulledSet))
		before := pods(ctx, set)

		setImage(ctx, set, nginxMissing)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Reason", Or(Equal("ImagePullBackOff"), Equal("ErrImagePull")))))
			g.Expect(set.Status.AvailableReplicas).To(BeEquivalentTo(1))
		})
		setImage(ctx, set, nginxAlpine)
		waitSettled(ctx, set)

		after := pods(ctx, set)
		Expect(after).To(HaveLen(3))
		for i := range after {
			Expect(after[i].UID).To(Equal(before[i].UID))
			Expect(after[i].Image).To(Equal(nginxAlpine))
		}
	})

	It("is patched forth and back while the kubelet waits for a preStop hook", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(1).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](10)
			s.Spec.Template.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{
				Exec: &corev1.ExecAction{Command: []string{"/sleeper", "-wait=8s"}},
			}}
		}))
		before := pods(ctx, set)

		setImage(ctx, set, sleeperV2)
		Eventually(ctx, func(ctx context.Context) string {
			return getPod(ctx, set, 0).Spec.Containers[0].Image
		}).Should(Equal(sleeperV2))
		setImage(ctx, set, sleeperV1)
		waitSettled(ctx, set)

		pod := getPod(ctx, set, 0)
		Expect(pod.UID).To(Equal(before[0].UID))
		Expect(pod.Spec.Containers[0].Image).To(Equal(sleeperV1))
		Expect(pod.Status.ContainerStatuses[0].Image).To(ContainSubstring("sleeper:v1"))
		// It was said to be complete, so it stays what it is.
		restarts := pods(ctx, set)[0].Restarts
		Consistently(ctx, func(ctx context.Context) int32 { return pods(ctx, set)[0].Restarts }).
			WithTimeout(15 * time.Second).Should(Equal(restarts))
	})

	It("updates a container that keeps crashing", func(ctx context.Context) {
		set := builders.StatefulSet(namespace, "sample", sleeperCrash).Build()
		Expect(api.Create(ctx, set)).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			found := pods(ctx, set)
			g.Expect(found).To(HaveLen(3))
			for _, p := range found {
				g.Expect(p.Restarts).To(BeNumerically(">=", 2))
			}
		}).Should(Succeed())
		before := pods(ctx, set)

		setImage(ctx, set, sleeperV1)
		waitSettled(ctx, set)

		for i, p := range pods(ctx, set) {
			Expect(p.UID).To(Equal(before[i].UID))
		}
	})

	It("needs no readiness gate, and without the switch of the policies it says that it cannot drain", Serial, func(ctx context.Context) {
		set := createUngated(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before := pods(ctx, set)
		turnOn := turnOff(ctx)
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonUpdatingPodInPlace, "(not drained: the API server does not keep pods out of service")

		turnOn(ctx)
		seen := watchPodsOf(ctx, namespace, "sample")
		setImage(ctx, set, nginxAlpine)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 2)
		Expect(seen()).To(ContainElement(HaveField("Labels", HaveKey(appsv1beta1.DrainedLabel))))
	})

	It("replaces a pod that is deleted in the middle, and finishes", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).With(endless))
		before := pods(ctx, set)
		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(And(HaveField("Pod", "sample-2"), in(inplace.Grace))))
		})
		Expect(api.Delete(ctx, getPod(ctx, set, 2), client.GracePeriodSeconds(1))).To(Succeed())
		Eventually(ctx, podUIDs).WithArguments(set).Should(And(HaveLen(3), Not(HaveKeyWithValue("sample-2", before[2].UID))))
		change(ctx, set, shortGrace)
		waitSettled(ctx, set)

		after := pods(ctx, set)
		expectInPlace(before[:2], after[:2], 1)
		Expect(after[2].UID).NotTo(Equal(before[2].UID))
		Expect(after[2].Image).To(Equal(nginxLatest))
		Expect(set.Status).To(And(HaveField("InPlaceUpdated", BeEquivalentTo(2)), HaveField("Recreated", BeEquivalentTo(1))))
	})

	It("goes on when the set is scaled in the middle", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).GracePeriod(2).Partition(2))
		before := pods(ctx, set)
		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.UpdatedReplicas).To(BeEquivalentTo(1))
		})
		change(ctx, set, edits(scaledTo(5), partition(0)))
		waitSettled(ctx, set)
		after := pods(ctx, set)
		Expect(after).To(HaveLen(5))
		expectInPlace(before, after[:3], 1)
		Expect(after[4].Image).To(Equal(nginxLatest))

		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](2) })
		waitSettled(ctx, set)
		Eventually(ctx, func(ctx context.Context) []observe.Pod { return pods(ctx, set) }).Should(HaveLen(2))
		expectInPlace(before[:2], pods(ctx, set), 1)
	})
})
