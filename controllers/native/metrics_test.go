// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apinative "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("The metrics of a held Deployment", func() {
	var w *world
	var measured *stage.Measured
	var r *native.Reconciler
	reconcile := func() {
		GinkgoHelper()
		_, err := r.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: w.name}})
		Expect(err).NotTo(HaveOccurred())
	}
	BeforeEach(func(ctx context.Context) {
		w, measured = newWorld(ctx), stage.NewMeasured()
		r = native.NewReconciler(native.Deployment, w.manager, w.live, w.recorder, w.clock)
		r.PullAs(stage.NoPulls())
		r.Measure(measured.Metrics)
	})

	It("tell of its update while it is held, and of the result after that", short.Spec, func() {
		w.pods(w.replicaSet(w.deployment(nil), "old", oldImage, 2))
		states := sets.New[string]()
		for range maxRounds {
			reconcile()
			if get(w, &appsv1.Deployment{}, w.name).Labels[apinative.HeldLabel] == "" {
				break
			}
			pods := 0
			for state, count := range measured.Series("insitu_rollout_pods") {
				states.Insert(state)
				pods += int(count)
			}
			Expect(pods).To(Or(BeZero(), Equal(2)))
			w.play()
		}
		Expect(len(states)).To(BeNumerically(">", 1), "%v", states)
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_pod_updates_total")).To(Equal(map[string]float64{"InPlace": 2}))
		Expect(measured.Series("insitu_native_updates_total")).To(Equal(map[string]float64{"UpdatedInPlace": 1}))
		Expect(measured.Series("insitu_pod_step_duration_seconds")).NotTo(BeEmpty())
		reconcile()
		measured.ExpectNoRollout()
	})

	It("name what keeps it, until it is released or gone", func() {
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Annotations[apinative.PartitionAnnotation], d.Labels[apinative.UpdatePolicyLabel] = "many", "InPlaceOnly"
		})
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		reconcile()
		Expect(measured.Series("insitu_rollout_stalled")).To(Equal(map[string]float64{string(apinative.InvalidOptions): 1}))

		Expect(w.api.Delete(w.ctx, d)).To(Succeed())
		reconcile()
		measured.ExpectNoRollout()
	})

	It("tell of an update that Kubernetes makes", func() {
		d := w.deployment(func(d *appsv1.Deployment) { d.Spec.Template.Spec.HostNetwork = true })
		w.pods(w.replicaSet(d, "old", oldImage, 2))
		reconcile()
		measured.ExpectNoRollout()
		Expect(measured.Series("insitu_native_updates_total")).To(Equal(map[string]float64{"ReleasedForRecreation": 1}))
		Expect(measured.Count("insitu_native_updates_total")).To(Equal(6), "the other outcomes are 0")
	})
})
