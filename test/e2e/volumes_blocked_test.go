// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"
	"k8s.io/apimachinery/pkg/api/meta"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// waitStalled waits until the pods of a set are at their template, and its
// condition Stalled says why claims are not.
func waitStalled(ctx context.Context, set *appsv1beta1.StatefulSet, message types.GomegaMatcher) {
	GinkgoHelper()
	eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
		isSettled(g, set)
		stalled := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)
		g.Expect(stalled).To(HaveField("Status", BeEquivalentTo("True")))
		g.Expect(stalled.Message).To(message)
		ready := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionReady)
		g.Expect(ready).NotTo(HaveField("Status", BeEquivalentTo("True")))
	})
}

// notStalled checks that nothing is said to be stuck any more.
func notStalled(set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	Expect(meta.IsStatusConditionTrue(set.Status.Conditions, appsv1beta1.ConditionStalled)).To(BeFalse())
	Expect(meta.IsStatusConditionTrue(set.Status.Conditions, appsv1beta1.ConditionReady)).To(BeTrue())
}

var _ = Describe("Volumes that do not grow", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newVolumeNamespace(ctx) })

	It("for their class forbids it, do not hold up an image", func(ctx context.Context) {
		set := create(ctx, nginxWithVolume(namespace, classFixed))
		before := pods(ctx, set)
		By("refusing at once what cannot be")
		larger := set.DeepCopy()
		toSize("2Gi")(larger)
		Expect(api.Update(ctx, larger)).To(MatchError(And(
			ContainSubstring("StorageClass "+classFixed+" does not allow volumes to grow"), ContainSubstring("data for 2Gi"))))

		By("naming it where claims begin to follow a template that is larger already")
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
			toSize("2Gi")(s)
		})
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
			toImage(nginxLatest)(s)
		})
		waitStalled(ctx, set, And(ContainSubstring("data-sample-"), ContainSubstring(classFixed)))
		expectInPlace(before, pods(ctx, set), 1)
		Expect(images(pods(ctx, set))).To(HaveEach(nginxLatest))
		Expect(capacities(ctx, namespace)).To(Equal(of(3, "1Gi")))
		for i := range before {
			Expect(set.Status.Blockers).To(ContainElement(And(
				HaveField("Pod", before[i].Name),
				HaveField("Message", And(ContainSubstring("data-"+before[i].Name), ContainSubstring(classFixed))))))
		}
		expectEvent(ctx, namespace, "StatefulSet", set.Status.Blockers[0].Reason, "data-sample-")

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			toSize("1Gi")(s)
			toImage(nginxAlpine)(s)
		})
		waitVolumes(ctx, set)
		notStalled(set)
		expectInPlace(before, pods(ctx, set), 2)
	})

	It("for the driver refuses one of them, hold up neither the others nor a rollback", func(ctx context.Context) {
		makeClass(ctx, namespace, map[string]string{"claims": "^data-sample-1$", "expandLimit": "3Gi"})
		set := create(ctx, nginxWithVolume(namespace, namespace))
		before := pods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			toSize("4Gi")(s)
			toImage(nginxLatest)(s)
		})
		uneven := of(3, "4Gi")
		uneven["data-sample-1"] = "1Gi"
		waitCapacities(ctx, namespace, uneven)
		waitStalled(ctx, set, And(ContainSubstring("data-sample-1"), Not(ContainSubstring("data-sample-0"))))
		expectInPlace(before, pods(ctx, set), 1)
		Expect(set.Status.Blockers).To(ConsistOf(And(HaveField("Pod", "sample-1"), HaveField("Message", ContainSubstring("data-sample-1")))))

		By("rolling back, which shrinks nothing")
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			toSize("1Gi")(s)
			toImage(nginxAlpine)(s)
		})
		waitVolumes(ctx, set)
		notStalled(set)
		expectInPlace(before, pods(ctx, set), 2)
		Expect(capacities(ctx, namespace)).To(Equal(uneven))

		By("growing less, which the driver takes")
		change(ctx, set, toSize("2Gi"))
		waitVolumes(ctx, set)
		notStalled(set)
		uneven["data-sample-1"] = "2Gi"
		Expect(capacities(ctx, namespace)).To(Equal(uneven))
		expectInPlace(before, pods(ctx, set), 2)
		Expect(filesystem(ctx, namespace, "sample-1", "/data")).To(BeNumerically(">", 1800))
	})
})
