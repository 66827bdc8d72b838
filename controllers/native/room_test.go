// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("A Deployment that is to be updated in place only, with maxUnavailable 0", func() {
	room := func(most string) *appsv1.RollingUpdateDeployment {
		return &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intOrString(most)), MaxSurge: ptr.To(intOrString("1"))}
	}

	DescribeTable("says at once that a user has to act, and what can be done", func(ctx context.Context, none string) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Labels[apinative.UpdatePolicyLabel], d.Spec.Strategy.RollingUpdate = "InPlaceOnly", room(none)
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))

		w.reconcile(native.Deployment)

		d = get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Annotations[apinative.StatusAnnotation]).To(And(
			ContainSubstring(`"state":"Stalled"`), ContainSubstring("maxUnavailable is 0, so no pod may be restarted"), Not(ContainSubstring("pods are missing"))))
		Expect(w.told()).To(ConsistOf(And(HavePrefix("Warning NoRoom pod web-old-"), HaveSuffix("or go back"))), "one event for all pods")
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())

		By("allowing one")
		d.Spec.Strategy.RollingUpdate = room("1")
		Expect(w.api.Update(w.ctx, d)).To(Succeed())
		w.settle()
		Expect(w.history()).To(ContainElement(HavePrefix("nginx:latest 2 ")))
	},
		Entry("as a number", short.Spec, "0"),
		Entry("as a percentage", "0%"),
	)

	It("says nothing while a pod is at work that gives room when it is done", func(ctx context.Context) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Labels[apinative.UpdatePolicyLabel], d.Spec.Strategy.RollingUpdate = "InPlaceOnly", room("0")
		})
		rs := w.replicaSet(d, "old", oldImage, 2)
		w.pods(rs)
		for _, name := range []string{rs.Name + "-0", rs.Name + "-1"} {
			w.notReady(name, func(status *corev1.ContainerStatus) { status.Ready = false })
		}
		w.reconcile(native.Deployment)
		Expect(w.told()).NotTo(ContainElement(ContainSubstring("NoRoom")))
	})

	It("changes what restarts no container", func(ctx context.Context) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Labels[apinative.UpdatePolicyLabel], d.Spec.Strategy.RollingUpdate = "InPlaceOnly", room("0")
			d.Spec.Template = template(oldImage)
			d.Spec.Template.Annotations = map[string]string{"example.io/level": "2"}
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.settle()
		Expect(w.told()).To(And(ContainElement(HavePrefix("Normal UpdatedInPlace 2 pods run revision")), Not(ContainElement(HavePrefix("Warning")))))
	})
})
