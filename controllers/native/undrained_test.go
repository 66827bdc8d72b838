// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/short"
)

// Pods without a readiness gate, on an API server that does not keep them out of service.
var _ = Describe("a Deployment whose pods cannot be drained", Serial, func() {
	var w *world
	var keeper *appsv1.ReplicaSet
	begin := func(ctx SpecContext, change func(*appsv1.Deployment)) {
		w = newWorld(ctx)
		keeper = w.replicaSet(w.deployment(change), "old", oldImage, 2)
		w.pods(keeper)
		giveBack, err := policies.TakeAway(w.ctx, w.api, policies.DrainBinding())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx context.Context) { Expect(giveBack(ctx)).To(Succeed()) })
	}
	podWrites := func() []string { return append(w.manager.Writes("patch Pod"), w.manager.Writes("delete Pod")...) }

	It("is released with a warning, and no pod is touched", short.Spec, func(ctx SpecContext) {
		begin(ctx, nil)

		w.settle()

		Expect(podWrites()).To(BeEmpty())
		Expect(w.told()).To(ContainElement(And(HavePrefix("Warning "+inplace.ReasonCannotDrain+" not in place: "),
			ContainSubstring("namespace "+w.namespace), ContainSubstring("policy insitu-drain"))))
	})

	It("stays as it is under InPlaceOnly, and says why", func(ctx SpecContext) {
		begin(ctx, func(d *appsv1.Deployment) { d.Labels[apinative.UpdatePolicyLabel] = "InPlaceOnly" })

		result := w.reconcile(native.Deployment)

		d := get(w, &appsv1.Deployment{}, w.name)
		Expect(d.Annotations[apinative.StatusAnnotation]).To(And(ContainSubstring(`"state":"Stalled"`), ContainSubstring(inplace.ReasonCannotDrain)))
		Expect(d.Labels).To(HaveKeyWithValue(apinative.HeldLabel, apinative.Held))
		Expect(podWrites()).To(BeEmpty())
		Expect(result.RequeueAfter).NotTo(BeZero(), "a policy may come")
	})

	It("restarts what keepReady names in service", func(ctx SpecContext) {
		begin(ctx, func(d *appsv1.Deployment) { d.Annotations[apinative.KeepReadyAnnotation] = `["main"]` })

		w.settle()

		Expect(w.manager.Writes("patch Pod/status")).To(BeEmpty())
		Expect(get(w, &corev1.Pod{}, keeper.Name+"-0").Spec.Containers[0].Image).To(Equal(newImage))
	})
})
