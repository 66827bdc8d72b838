// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

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
		states := sets.New[string]()
		w.settleWith(func() {
			pods := 0
			for state, count := range measured.Series("insitu_rollout_pods") {
				states.Insert(state)
				pods += int(count)
			}
			Expect(pods).To(Or(BeZero(), Equal(4)))
		})
		w.expectSettled(4)
		Expect(states.HasAll(string(inplace.Waiting), string(inplace.Draining), string(inplace.Restarting))).To(BeTrue(), "%v", states)
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"InPlace": 4}))
		Expect(measured.Series("insitu_pod_step_duration_seconds")).To(And(HaveKeyWithValue("Draining", 4.), HaveKeyWithValue("Restarting", 4.)))
	})

	It("tell apart pods that were recreated, and end with their set", func() {
		w.create(reference().Policy(appsv1beta1.RecreatePodUpdateStrategyType))
		w.setImage("nginx:latest")
		for range 3 {
			w.reconcile()
			w.kubelet.Sync(w.ctx)
		}
		Expect(measured.Series("insitu_rollout_progress_timestamp_seconds")).To(HaveLen(1))
		w.settle()
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"Recreate": 4}))

		w.setImage("nginx:alpine")
		w.reconcile()
		Expect(measured.Series("insitu_rollout_pods")).NotTo(BeEmpty())
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy("Background"))).To(Succeed())
		Expect(w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)})).To(BeZero())
		measured.ExpectNoRollout()
	})
})
