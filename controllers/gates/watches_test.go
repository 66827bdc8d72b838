// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// What brings a pod to mind is not a call of Reconcile: here the manager runs.
var _ = Describe("the controller", func() {
	var w *world
	BeforeEach(func(ctx SpecContext) {
		w = newWorld(ctx)
		startManager(ctx, w.namespace)
	})

	becomes := func(status corev1.ConditionStatus) {
		GinkgoHelper()
		Eventually(w.gate, "1m").Should(Equal(status))
	}

	It("notices new pods", func() {
		w.pod(w.statefulSet(foreign))
		becomes(corev1.ConditionTrue)
	})

	DescribeTable("notices the end of a hold", func(ctx SpecContext, create func() (workload, owner client.Object), end func(client.Object)) {
		workload, owner := create()
		w.drained(owner)
		Consistently(w.gate, "500ms").Should(Equal(corev1.ConditionFalse))

		end(workload)

		becomes(corev1.ConditionTrue)
	},
		Entry("of a Deployment whose label is taken off", func() (client.Object, client.Object) {
			deployment := w.deployment(held)
			return deployment, w.replicaSet(deployment)
		}, func(workload client.Object) { w.relabel(workload, foreign) }),
		Entry("of a Deployment that is released", func() (client.Object, client.Object) {
			deployment := w.deployment(held)
			return deployment, w.replicaSet(deployment)
		}, func(workload client.Object) { w.relabel(workload, atRest) }),
		Entry("of a ReplicaSet that its Deployment releases", func() (client.Object, client.Object) {
			replicaSet := w.replicaSet(w.deployment(held))
			return replicaSet, replicaSet
		}, func(replicaSet client.Object) {
			before := replicaSet.DeepCopyObject().(client.Object)
			replicaSet.SetOwnerReferences(nil)
			Expect(w.api.Patch(w.ctx, replicaSet, client.MergeFrom(before))).To(Succeed())
		}),
		Entry("of a StatefulSet whose label is taken off", func() (client.Object, client.Object) {
			set := w.statefulSet(held)
			return set, set
		}, func(workload client.Object) { w.relabel(workload, foreign) }),
		Entry("of a DaemonSet that is deleted", func() (client.Object, client.Object) {
			set := w.daemonSet(held)
			return set, set
		}, func(workload client.Object) { Expect(w.api.Delete(w.ctx, workload)).To(Succeed()) }),
	)
})

// startManager starts a manager with the controller for one namespace.
func startManager(ctx context.Context, namespace string) {
	GinkgoHelper()
	manager, err := ctrl.NewManager(server.Config(), ctrl.Options{
		Scheme:     shared.GetScheme(),
		Cache:      podcache.Options([]string{namespace}),
		Client:     client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Metrics:    metricsserver.Options{BindAddress: "0"},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(podcache.AddIndexes(ctx, manager.GetFieldIndexer())).To(Succeed())
	Expect(gates.Add(manager, true)).To(Succeed())
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	DeferCleanup(func() {
		stop()
		Expect(<-ended).To(Succeed())
	})
	_, err = manager.GetCache().GetInformer(ctx, &appsv1.DaemonSet{})
	Expect(err).NotTo(HaveOccurred())
}
