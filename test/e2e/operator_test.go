// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/labtools"
)

const operatorNamespace = "insitu-system"

func mergeFrom(before client.Object) client.Patch {
	return client.MergeFrom(before)
}

// leader returns the identity of the operator that leads, the one that acts. It
// is the name of its pod, and something that no other has.
func leader(ctx context.Context) string {
	GinkgoHelper()
	leases := &coordinationv1.LeaseList{}
	Expect(api.List(ctx, leases, client.InNamespace(operatorNamespace))).To(Succeed())
	Expect(leases.Items).To(HaveLen(1))
	return ptr.Deref(leases.Items[0].Spec.HolderIdentity, "")
}

// killOperator sends SIGKILL to the operator that leads, as an out-of-memory
// kill does, and waits until one leads again: when the lease has run out.
func killOperator(ctx context.Context) {
	GinkgoHelper()
	identity := leader(ctx)
	name, _, _ := strings.Cut(identity, "_")
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		pod := &corev1.Pod{}
		g.Expect(api.Get(ctx, client.ObjectKey{Namespace: operatorNamespace, Name: name}, pod)).To(Succeed())
		// A kubelet may not have reported yet which container runs.
		containerID := pod.Status.ContainerStatuses[0].ContainerID
		killed, err := labtools.KillContainer(containerID)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(killed).NotTo(BeZero(), "no process of container "+containerID+" was found")
	}).Should(Succeed())
	Eventually(ctx, leader).Should(And(Not(BeEmpty()), Not(Equal(identity))))
}

var _ = Describe("The operator, killed with SIGKILL in the middle of an update", outage, func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	DescribeTable("goes on where it was", func(ctx context.Context, reached func(Gomega, *appsv1beta1.StatefulSet, *corev1.Pod)) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).GracePeriod(3).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Args = []string{"-ignore-term=2s"}
		}))
		before := pods(ctx, set)
		written := len(operatorWrites(namespace))

		setImage(ctx, set, sleeperV2)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			reached(g, set, getPod(ctx, set, 2))
		}).WithPolling(20 * time.Millisecond).Should(Succeed())
		killOperator(ctx)
		waitSettled(ctx, set)

		expectInPlace(before, pods(ctx, set), 1)
		writes := operatorWrites(namespace)[written:]
		for _, p := range pods(ctx, set) {
			Expect(podWrites(writes, p.Name)).To(Equal([]string{"patch pods/status", "patch pods/", "patch pods/status"}), p.Name)
		}
	},
		Entry("after a pod was marked not ready", variant, func(g Gomega, _ *appsv1beta1.StatefulSet, pod *corev1.Pod) {
			g.Expect(gateStatus(pod)).To(Equal(corev1.ConditionFalse))
			g.Expect(pod.Spec.Containers[0].Image).To(Equal(sleeperV1))
		}),
		Entry("after a pod was patched, before its container is restarted", func(g Gomega, _ *appsv1beta1.StatefulSet, pod *corev1.Pod) {
			g.Expect(pod.Spec.Containers[0].Image).To(Equal(sleeperV2))
			g.Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero())
		}),
		Entry("after one of the pods is done", variant, func(g Gomega, set *appsv1beta1.StatefulSet, _ *corev1.Pod) {
			g.Expect(set.Status.UpdatedReadyReplicas).To(BeEquivalentTo(1))
		}),
	)
})

func gateStatus(pod *corev1.Pod) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == appsv1beta1.InPlaceUpdateReady {
			return c.Status
		}
	}
	return ""
}
