// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// attributes returns the classes of attributes that the claims of a namespace
// have, by name.
func attributes(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, claim := range claimList(ctx, namespace) {
		found[claim.Name] = ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "")
	}
	return found
}

func toAttributes(class string) edit {
	return func(s *appsv1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = &class
	}
}

var _ = Describe("Volumes of a database", func() {
	DescribeTable("change under it while it is written to", func(ctx context.Context, d database) {
		namespace := newVolumeNamespace(ctx)
		set := create(ctx, d.set(namespace, classStandard).With(toAttributes(classSilver)))
		expectFilesystems(ctx, set, 1)
		Expect(attributes(ctx, namespace)).To(Equal(of(3, classSilver)))
		before := pods(ctx, set)
		writers := startWriters(ctx, d, set)

		By("growing, without a restart")
		change(ctx, set, toSize("2Gi"))
		waitVolumes(ctx, set)
		Expect(capacities(ctx, namespace)).To(Equal(of(3, "2Gi")))
		expectFilesystems(ctx, set, 2)
		expectInPlace(before, pods(ctx, set), 0)
		writers.expectGoOn(ctx)

		By("getting another class of attributes, without a restart")
		change(ctx, set, toAttributes(classGold))
		waitVolumes(ctx, set)
		Expect(attributes(ctx, namespace)).To(Equal(of(3, classGold)))
		expectInPlace(before, pods(ctx, set), 0)
		writers.expectGoOn(ctx)

		By("growing in one revision with a new image")
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			toSize("3Gi")(s)
			toImage(d.newImage)(s)
		})
		waitVolumes(ctx, set)
		Expect(capacities(ctx, namespace)).To(Equal(of(3, "3Gi")))
		expectFilesystems(ctx, set, 3)
		expectInPlace(before, pods(ctx, set), 1)
		Expect(images(pods(ctx, set))).To(HaveEach(d.newImage))
		Expect(set.Status.Recreated).To(BeZero())

		writers.expectAllStored(ctx)
	},
		Entry("Redis", redis),
		Entry("PostgreSQL", postgres),
	)

	It("grow although the operator is killed in the middle", Serial, func(ctx context.Context) {
		namespace := newVolumeNamespace(ctx)
		set := create(ctx, redis.set(namespace, classStandard).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.MaxConcurrent = nil
		}))
		before := pods(ctx, set)
		writers := startWriters(ctx, redis, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			toSize("2Gi")(s)
			toImage(redis.newImage)(s)
		})
		Eventually(ctx, capacities).WithArguments(namespace).WithTimeout(volumePatience).Should(ContainElement("2Gi"))
		killOperator(ctx)
		waitVolumes(ctx, set)
		Expect(capacities(ctx, namespace)).To(Equal(of(3, "2Gi")))
		expectInPlace(before, pods(ctx, set), 1)
		writers.expectAllStored(ctx)
	})
})
