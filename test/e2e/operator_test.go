// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/labtools"
	"github.com/insitu-dev/insitu/test/short"
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

var _ = Describe("The operator, killed with SIGKILL in the middle of an update", Serial, func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	DescribeTable("goes on where it was", func(ctx context.Context, grace edit, reached func(*corev1.Pod) bool) {
		// The other pods keep out of it until the operator is killed, however late that is.
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Partition(2).With(edits(grace, args("-ignore-term=2s"))))
		before := pods(ctx, set)
		written, versions := len(operatorWrites(namespace)), versionsOfPod(ctx, set, 2)

		setImage(ctx, set, sleeperV2)
		waitVersion(ctx, versions, Satisfy(reached))
		killOperator(ctx)
		change(ctx, set, edits(partition(0), shortGrace))
		waitSettled(ctx, set)

		expectInPlace(before, pods(ctx, set), 1)
		writes := operatorWrites(namespace)[written:]
		for _, p := range pods(ctx, set) {
			Expect(podWrites(writes, p.Name)).To(Equal([]string{"patch pods/status", "patch pods/", "patch pods/status"}), p.Name)
		}
	},
		Entry("after a pod was marked not ready", endless, func(pod *corev1.Pod) bool {
			return gateStatus(pod) == corev1.ConditionFalse && pod.Spec.Containers[0].Image == sleeperV1
		}),
		Entry("after a pod was patched, before its container is restarted", short.Spec, graceOf(3), func(pod *corev1.Pod) bool {
			return pod.Spec.Containers[0].Image == sleeperV2 && pod.Status.ContainerStatuses[0].RestartCount == 0
		}),
		Entry("after one of the pods is done", graceOf(3), func(pod *corev1.Pod) bool {
			return pod.Spec.Containers[0].Image == sleeperV2 && gateStatus(pod) == corev1.ConditionTrue && podutils.IsPodReady(pod)
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
