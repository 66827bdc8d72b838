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
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
)

// limitRange allows containers so much memory.
func limitRange(memory string) client.Object {
	return &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
		Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)},
	}}}}
}

// quota allows the pods of a namespace so much CPU.
func quota(cpu string) client.Object {
	return &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourceRequestsCPU: resource.MustParse(cpu)},
	}}
}

// guaranteed gives the container limits that equal its requests.
func guaranteed(set *appsv1beta1.StatefulSet) {
	resources := small.resources()
	resources.Limits = resources.Requests
	set.Spec.Template.Spec.Containers[0].Resources = resources
}

var _ = Describe("A resize that the API server refuses", func() {
	DescribeTable("is told in its words and touches no pod; the next revision goes through",
		func(ctx context.Context, rule client.Object, wanted edit, reason, words string) {
			namespace := newNamespace(ctx)
			if rule != nil {
				rule.SetNamespace(namespace)
				rule.SetName("rule")
				Expect(api.Create(ctx, rule)).To(Succeed())
			}
			set := create(ctx, sized(namespace, small))
			before, seen, written := identities(ctx, namespace), watchPods(ctx, namespace), len(operatorWrites(namespace))

			change(ctx, set, wanted)
			eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
				expectStalled(g, set, reason, words)
				g.Expect(set.Status.Blockers).To(And(Not(BeEmpty()), HaveEach(HaveField("Reason", reason))))
				g.Expect(set.Status.Resize).To(HaveValue(HaveField("Kept", BeNumerically(">=", 1))))
			})
			expectEvent(ctx, namespace, "StatefulSet", reason, words)
			// Longer than the time after which the server is asked again.
			Consistently(ctx, func(ctx context.Context) map[string]identity { return identities(ctx, namespace) }).
				WithTimeout(17 * time.Second).Should(Equal(before))
			Expect(operatorWrites(namespace)[written:]).NotTo(ContainElement(ContainSubstring("pods/status")), "drained")

			// Back to the old size, and to one that may be.
			change(ctx, set, to(small))
			waitSettled(ctx, set)
			change(ctx, set, wanted)
			eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) { expectStalled(g, set, reason, words) })
			change(ctx, set, to(large))
			waitSettled(ctx, set)
			expectInService(seen())
			Expect(identities(ctx, namespace)).To(Equal(before))
			for _, pod := range getPods(ctx, set) {
				expectSize(pod, large)
			}
		},
		Entry("99 CPUs", nil, to(size{cpu: "99", memory: "64Mi"}),
			inplace.ReasonResizeInfeasible, "node didn't have enough allocatable resources: cpu, requested: 99000"),
		Entry("a quota", quota("300m"), to(size{cpu: "300m", memory: "64Mi"}),
			inplace.ReasonResizeDenied, "exceeded quota: rule, requested: requests.cpu=250m"),
		Entry("the maximum of a LimitRange", limitRange("128Mi"), to(size{cpu: "50m", memory: "256Mi"}),
			inplace.ReasonResizeDenied, "maximum memory usage per Container is 128Mi, but limit is 256Mi"),
	)

	It("for good, since the pods would be of another QoS class, has them recreated", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := create(ctx, sized(namespace, small))
		before := identities(ctx, namespace)
		change(ctx, set, guaranteed)
		waitSettled(ctx, set)
		for name, pod := range identities(ctx, namespace) {
			Expect(pod.uid).NotTo(Equal(before[name].uid), name)
		}
		for _, pod := range getPods(ctx, set) {
			Expect(pod.Status.QOSClass).To(Equal(corev1.PodQOSGuaranteed), pod.Name)
		}
	})

	It("beside another image keeps the pod at its old image, too, in service", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := create(ctx, sized(namespace, small))
		before, seen := identities(ctx, namespace), watchPods(ctx, namespace)
		change(ctx, set, edits(image(sleeperV2), to(size{cpu: "99", memory: "64Mi"})))
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			expectStalled(g, set, inplace.ReasonResizeInfeasible, "requested: 99000")
		})
		Expect(identities(ctx, namespace)).To(Equal(before))
		change(ctx, set, edits(image(sleeperV1), to(small)))
		waitSettled(ctx, set)
		expectInService(seen())
		Expect(identities(ctx, namespace)).To(Equal(before))
	})
})

var _ = Describe("A resize by another client", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("is left alone until a revision changes it", short.Spec, func(ctx context.Context) {
		set := create(ctx, sized(namespace, small))
		before := identities(ctx, namespace)
		resizeBy(ctx, "vpa", getPod(ctx, set, 0), size{cpu: "60m", memory: "72Mi"})
		change(ctx, set, label)
		waitSettled(ctx, set)
		written := writesAtRest(ctx, namespace)
		nudge(ctx, set, "settled")
		Expect(cpuOf(getPod(ctx, set, 0))).To(Equal("60m"))
		Expect(operatorWrites(namespace)[written:]).To(BeEmpty())

		change(ctx, set, to(large))
		waitSettled(ctx, set)
		expectSize(getPod(ctx, set, 0), large)
		resizeBy(ctx, "vpa", getPod(ctx, set, 0), size{cpu: "80m", memory: "104Mi"})
		written = len(operatorWrites(namespace))
		nudge(ctx, set, "resized-again")
		Expect(cpuOf(getPod(ctx, set, 0))).To(Equal("80m"))
		Expect(operatorWrites(namespace)[written:]).NotTo(ContainElement(ContainSubstring("pods/")))
		Expect(identities(ctx, namespace)).To(Equal(before))
	})

	It("is set back where drift is enforced", func(ctx context.Context) {
		set := create(ctx, sized(namespace, small).With(resizing(appsv1beta1.ResizePolicy{Drift: appsv1beta1.EnforceResizeDrift})))
		before := identities(ctx, namespace)
		resizeBy(ctx, "vpa", getPod(ctx, set, 0), size{cpu: "60m", memory: "72Mi"})
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pod := getPod(ctx, set, 0)
			g.Expect(cpuOf(pod)).To(Equal(small.cpu))
			g.Expect(pod.Status.ContainerStatuses[0].Resources.Requests.Cpu().String()).To(Equal(small.cpu))
		}).Should(Succeed())
		waitSettled(ctx, set)
		Expect(identities(ctx, namespace)).To(Equal(before))
	})
})
