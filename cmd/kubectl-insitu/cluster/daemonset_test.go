// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// agents returns a DaemonSet of ours on the only node, which goes with the spec.
func (w *world) agents() *appsv1beta1.DaemonSet {
	GinkgoHelper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
	Expect(w.api.Create(w.ctx, node)).To(Succeed())
	DeferCleanup(func() { Expect(w.api.Delete(w.ctx, node)).To(Succeed()) })
	node.Spec.Taints = nil // that of a node that is not ready yet
	Expect(w.api.Update(w.ctx, node)).To(Succeed())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	Expect(w.api.Status().Update(w.ctx, node)).To(Succeed())
	return &appsv1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}, Template: template(oldImage),
			UpdateStrategy: appsv1beta1.DaemonSetUpdateStrategy{RollingUpdate: &appsv1beta1.RollingUpdateDaemonSetStrategy{
				RollingUpdateType: appsv1beta1.InPlaceIfPossibleDaemonSetRollingUpdateType,
			}},
		},
	}
}

var _ = Describe("a DaemonSet of ours", func() {
	It("is planned as it is updated", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, w.agents())
		w.settle(set)
		Expect(w.report(set).Phase).To(Equal(report.Healthy))
		plan := w.plan(set, image(newImage))
		Expect(plan.Pods).To(ConsistOf(HaveField("Way", report.InPlace)))
		setImage(newImage)(w, set)
		w.settle(set)
		Expect(w.report(set)).To(And(HaveField("Phase", report.Healthy), HaveField("InPlace", BeEquivalentTo(1))))
	})

	// Nodes belong to the cluster, and no role in a namespace reaches them.
	It("is shown to who may view, without a right to nodes", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, w.agents())
		w.settle(set)
		w.allow("viewer", "system:aggregate-to-view", "insitu-view")
		viewer, audit := w.asUser("viewer")
		found := w.found(set)
		Eventually(func() error { _, err := viewer.Report(ctx, found); return err }).Should(Succeed())
		told, err := viewer.Report(ctx, found)
		Expect(err).NotTo(HaveOccurred())
		isHealthy := And(
			HaveField("Phase", report.Healthy), HaveField("Pods", HaveLen(1)), HaveField("Revisions", ConsistOf(HaveField("IsUpdate", true))),
		)
		Expect(told).To(isHealthy)

		watcher, err := viewer.Watch(ctx, w.namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(watcher.Report(ctx, found)).To(isHealthy)
		_, err = viewer.Plan(ctx, found, found.Object.DeepCopyObject().(client.Object))
		Expect(err).To(MatchError(And(ContainSubstring("you lack a right"), ContainSubstring("list nodes"))))
		Expect(audit.Writes()).To(BeEmpty())
	}, SpecTimeout(time.Minute))

	It("is watched with its nodes by who may see them", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, w.agents())
		w.settle(set)
		watcher, err := w.cluster.Watch(ctx, w.namespace)
		Expect(err).NotTo(HaveOccurred())
		Expect(watcher.Report(ctx, w.found(set))).To(And(HaveField("Phase", report.Healthy), HaveField("Pods", ConsistOf(HaveField("Updated", true)))))
	}, SpecTimeout(time.Minute))
})
