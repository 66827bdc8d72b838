// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("The metrics of a set", func() {
	var w *world
	var measured *stage.Measured
	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		measured = stage.NewMeasured()
		w.reconciler.Measure(measured.Metrics)
	})

	It("tell of a rollout while it goes on, and of its result after that", short.Spec, func() {
		w.create(reference())
		measured.ExpectNoRollout()

		w.setImage("nginx:latest")
		states, blockers := sets.New[string](), sets.New[string]()
		w.settleWith(func() {
			pods := 0
			for state, count := range measured.Series("insitu_rollout_pods") {
				states.Insert(state)
				pods += int(count)
			}
			Expect(pods).To(Or(BeZero(), Equal(3)))
			for reason := range measured.Series("insitu_rollout_blockers") {
				blockers.Insert(reason)
			}
		})
		w.expectSettled(3)
		Expect(states).To(HaveKey(string(inplace.Waiting)))
		Expect(states).To(HaveKey(string(inplace.Draining)))
		Expect(states).To(HaveKey(string(inplace.Restarting)))
		Expect(blockers).To(HaveKey(inplace.ReasonBudget))
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"InPlace": 3}))
		Expect(measured.Series("insitu_pod_step_duration_seconds")).To(And(
			HaveKeyWithValue("Waiting", 2.), HaveKeyWithValue("Draining", 3.), HaveKeyWithValue("Restarting", 3.)))
		Expect(measured.Series("insitu_plan_duration_seconds")).NotTo(BeEmpty())
	})

	It("tell apart pods that were recreated", func() {
		w.create(reference().Policy(appsv1beta1.RecreatePodUpdateStrategyType))
		w.setImage("nginx:latest")
		w.settle()
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"Recreate": 3}))
	})

	It("name what is wrong as the status does, until the set is gone", func() {
		w.create(reference())
		w.kubelet.Unready = map[string]bool{"sample-2": true}
		w.setImage("nginx:latest")
		for range 10 {
			w.reconcile()
			w.kubelet.Sync(w.ctx)
		}
		blockers := w.status().Blockers
		Expect(blockers).NotTo(BeEmpty())
		Expect(measured.Series("insitu_rollout_blockers")).To(HaveKey(blockers[0].Reason))
		Expect(measured.Series("insitu_rollout_progress_timestamp_seconds")).To(HaveLen(1))

		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy("Background"))).To(Succeed())
		Expect(w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)})).To(BeZero())
		measured.ExpectNoRollout()
	})
})
