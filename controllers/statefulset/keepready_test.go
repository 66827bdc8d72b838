// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// keptReady is the reference with a long grace period, which a change that drains
// nothing does not wait for.
func keptReady(names ...string) *builders.StatefulSetBuilder {
	return reference().GracePeriod(600).With(func(set *appsv1beta1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy.KeepReady = names
	})
}

// expectInService checks that no pod was taken out of service for its update.
func (w *world) expectInService() {
	GinkgoHelper()
	for name, pod := range w.pods() {
		Expect(inplace.IsMarkedNotReady(pod)).To(BeFalse(), name)
	}
}

var _ = Describe("keepReady", func() {
	It("changes the containers that it names at once, within the budget", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(keptReady("main"))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.reconcile()
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:alpine", "sample-1": "nginx:alpine", "sample-2": "nginx:latest"}))
		Expect(w.recorder.Events(appsv1beta1.ReasonUpdatingPodInPlace)).To(ContainElement(
			HaveField("Note", ContainSubstring("(not drained: keepReady names main)"))))
		w.settleWith(w.expectInService)
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(HaveEach(BeEquivalentTo(1)))
	})

	It("leaves other containers to be drained", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(keptReady("proxy"))
		w.setImage("nginx:latest")
		w.reconcile()
		Expect(w.images()).To(HaveEach("nginx:alpine"))
		Expect(stage.PodConditionStatus(w.pod("sample-2"), appsv1beta1.InPlaceUpdateReady)).To(Equal(corev1.ConditionFalse))
	})

	It("lets a pod leave an image that does not exist", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(keptReady("main"))
		w.setImage("nginx:" + stage.MissingImage)
		w.settleWith(w.expectInService)
		Expect(w.status().Blockers).To(ContainElement(HaveField("Pod", "sample-2")))
		w.setImage("nginx:latest")
		w.settleWith(w.expectInService)
		w.expectSettled(3)
	})
})
