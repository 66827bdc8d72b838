// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
)

// Kubernetes would delete pods, and could make no others. What is asked is a real API server.
var _ = Describe("a Deployment of which no new pod is accepted", Serial, func() {
	var w *world
	begin := func(ctx context.Context, change func(*appsv1.Deployment)) {
		w = newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.PriorityClassName = "golden"
			change(d)
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		w.reconcile(native.Deployment)
	}
	missing := func(maxUnavailable string) func(*appsv1.Deployment) {
		return surging(func(d *appsv1.Deployment) { d.Annotations[apinative.HeldMaxUnavailableAnnotation] = maxUnavailable })
	}
	expectKept := func() {
		GinkgoHelper()
		d := get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Labels).To(HaveKeyWithValue(apinative.HeldLabel, apinative.Held))
		Expect(d.Annotations[apinative.StatusAnnotation]).To(And(
			ContainSubstring(`"state":"Stalled"`), ContainSubstring(inplace.ReasonRecreationDenied), ContainSubstring("no PriorityClass with name golden was found")))
		Expect(w.told()).To(ContainElement(And(HavePrefix("Warning RecreationDenied "), ContainSubstring("no PriorityClass with name golden was found"))))
		Expect(w.manager.Writes("patch Pod")).To(BeEmpty())
	}

	It("stays held, says why in the words of the server, and is released when it accepts one", short.Spec, func(ctx SpecContext) {
		begin(ctx, missing("1"))
		expectKept()

		created := create(w, &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "golden"}, Value: 1})
		DeferCleanup(func(ctx context.Context) { Expect(w.api.Delete(ctx, created)).To(Succeed()) })
		Eventually(func() map[string]string {
			w.reconcile(native.Deployment)
			return get(w, &appsv1.Deployment{}, w.name).Labels
		}).ShouldNot(HaveKey(apinative.HeldLabel), "admission looks the class up in a cache")
		Expect(w.told()).To(ContainElement(HavePrefix("Normal ReleasedForRecreation ")))
	})

	It("stays held when its options cannot be read", func(ctx SpecContext) {
		begin(ctx, func(d *appsv1.Deployment) {
			missing("1")(d)
			d.Annotations[apinative.GracePeriodSecondsAnnotation] = "many"
		})

		d := get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Labels).To(HaveKeyWithValue(apinative.HeldLabel, apinative.Held))
		Expect(d.Annotations[apinative.StatusAnnotation]).To(And(ContainSubstring(`"state":"InvalidOptions"`), ContainSubstring("no PriorityClass with name golden was found")))
	})

	It("is released where Kubernetes makes new pods first", func(ctx SpecContext) {
		begin(ctx, missing("0"))

		Expect(get(w, &appsv1.Deployment{}, w.name).Labels).NotTo(HaveKey(apinative.HeldLabel))
	})

	It("stays held when pods are deleted before others are made, without a pod more", func(ctx SpecContext) {
		begin(ctx, func(d *appsv1.Deployment) {
			d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: new(intOrString("1")), MaxSurge: new(intOrString("0"))}
		})
		expectKept()
	})
})
