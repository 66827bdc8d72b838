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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("An image that is pulled before", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("takes no pod out of service while no node can pull it", short.Spec, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).With(func(s *appsv1beta1.StatefulSet) {
			// With Always, the kubelet asks the registry also for an image that it has.
			s.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
			s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{
				ImagePull: &appsv1beta1.ImagePullPolicy{},
			}
		}))
		before := pods(ctx, set)

		By("a tag that does not exist")
		setImage(ctx, set, nginxMissing)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			stalled := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)
			g.Expect(stalled).To(And(HaveField("Status", BeEquivalentTo("True")), HaveField("Reason", inplace.ReasonImageNotPullable)))
			g.Expect(stalled.Message).To(ContainSubstring("cannot pull " + nginxMissing)) // one node, or both
		})
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			found := pods(ctx, set)
			g.Expect(found).To(HaveLen(len(before)))
			for i := range found {
				g.Expect(found[i].UID).To(Equal(before[i].UID))
				g.Expect(found[i].Ready).To(BeTrue(), found[i].Name)
				g.Expect(found[i].Image).To(Equal(nginxAlpine))
			}
		}).WithTimeout(5 * time.Second).Should(Succeed())
		expectEvent(ctx, namespace, "StatefulSet", inplace.ReasonImageNotPullable, "cannot pull "+nginxMissing)

		By("the tag that was meant")
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			left := &corev1.PodList{}
			g.Expect(api.List(ctx, left, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
			g.Expect(left.Items).To(BeEmpty(), "nothing is left behind")
		}).Should(Succeed())
		ran := false
		for _, event := range eventsOf(ctx, namespace) {
			if strings.HasPrefix(event.Regarding.Name, "sample-pull-") {
				ran = ran || event.Reason == "Started"
				Expect(event.Reason).NotTo(Equal("FailedMount"), event.Note)
			}
		}
		Expect(ran).To(BeFalse(), "nothing of the image runs")
	})
})
