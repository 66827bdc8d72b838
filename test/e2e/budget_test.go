// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("podDisruptionBudget Respect", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	respecting := func() *builders.StatefulSetBuilder {
		return builders.StatefulSet(namespace, "sample", sleeperV1).MaxUnavailable(3).GracePeriod(0).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy.PodDisruptionBudget = appsv1beta1.RespectPodDisruptionBudget
		})
	}
	protect := func(ctx context.Context, minAvailable int32) *policyv1.PodDisruptionBudget {
		GinkgoHelper()
		budget := &policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quorum"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: ptr.To(intstr.FromInt32(minAvailable)),
				Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sample"}},
			},
		}
		Expect(api.Create(ctx, budget)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed())
			g.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(3))
		}).Should(Succeed())
		return budget
	}

	DescribeTable("lets the budget decide, although maxUnavailable is 3", func(ctx context.Context, by edit) {
		set := create(ctx, respecting())
		protect(ctx, 2)
		change(ctx, set, by)
		Eventually(ctx, func(g Gomega) {
			ready := 0
			for _, pod := range pods(ctx, set) {
				if pod.Ready {
					ready++
				}
			}
			Expect(ready).To(BeNumerically(">=", 2), "the budget")
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			isSettled(g, set)
		}).Should(Succeed())
	},
		Entry("of updates in place", image(sleeperV2)),
		Entry("of recreations, which are evictions", short.Spec, edit(environment)),
	)

	It("waits, and says for what, while the budget allows nothing", func(ctx context.Context) {
		set := create(ctx, respecting())
		budget := protect(ctx, 3)
		before := pods(ctx, set)
		setImage(ctx, set, sleeperV2)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(And(
				HaveField("Reason", inplace.ReasonDisruptionBudget), HaveField("Message", ContainSubstring("quorum needs 3 healthy pods")))))
		})
		expectInPlace(before, pods(ctx, set), 0)

		Expect(api.Delete(ctx, budget)).To(Succeed())
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
	})
})
