// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("The metrics of a DaemonSet", func() {
	var w *world
	var measured *stage.Measured
	BeforeEach(func(ctx context.Context) {
		w = newWorld(ctx)
		measured = stage.NewMeasured()
		w.reconciler.Measure(measured.Metrics)
	})

	It("tell of a rollout while it goes on, and of its result after that", func() {
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
			Expect(pods).To(Or(BeZero(), Equal(3)))
		})
		w.expectSettled(3)
		Expect(states.HasAll(string(inplace.Waiting), string(inplace.Draining), string(inplace.Restarting))).To(BeTrue(), "%v", states)
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"InPlace": 3}))
		Expect(measured.Series("insitu_pod_step_duration_seconds")).To(And(HaveKeyWithValue("Draining", 3.), HaveKeyWithValue("Restarting", 3.)))
	})

	It("tell apart pods that were recreated, and end with their set", func() {
		w.create(reference())
		w.change(newEnv)
		w.settle()
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"Recreate": 3}))

		w.setImage("nginx:latest")
		w.reconcile()
		Expect(measured.Series("insitu_rollout_pods")).NotTo(BeEmpty())
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy("Background"))).To(Succeed())
		w.reconcile()
		measured.ExpectNoRollout()
	})
})
