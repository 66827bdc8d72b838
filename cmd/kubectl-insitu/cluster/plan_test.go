// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/change"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
	"github.com/insitu-dev/insitu/test/builders"
)

// requests plans other requests for all containers.
func requests(cpu string) change.Edit {
	return change.SetResources(change.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}})
}

var _ = Describe("a plan", func() {
	It("says of each pod what becomes of it", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, builders.StatefulSet("", "db", oldImage).Build())
		w.settle(set)

		planned := w.plan(set, image(newImage))
		Expect(planned.Changes).To(Equal([]string{`spec.template.spec.containers[main].image: "` + oldImage + `" -> "` + newImage + `"`}))
		Expect(planned.Pods).To(HaveLen(3))
		for _, pod := range planned.Pods {
			Expect(pod).To(And(HaveField("Way", report.InPlace), HaveField("Restarts", []string{"main"}), HaveField("Drains", true)))
		}

		planned = planOf(w, set, func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.ServiceAccountName = "other" })
		Expect(ways(planned)).To(Equal(map[string]report.Way{"db-0": report.Recreate, "db-1": report.Recreate, "db-2": report.Recreate}))

		planned = planOf(w, set, func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.PriorityClassName = "golden" })
		Expect(planned.Pods).To(HaveEach(HaveField("Way", report.Refused)), "no pod is deleted for one that is not accepted")
		Expect(planned.Refusals).To(ConsistOf(ContainSubstring("no PriorityClass with name golden was found")))

		planned = planOf(w, set, func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = newImage
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2)
		})
		Expect(ways(planned)).To(Equal(map[string]report.Way{"db-0": report.Kept, "db-1": report.Kept, "db-2": report.InPlace}))

		planned = planOf(w, set, func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](2) })
		Expect(ways(planned)).To(Equal(map[string]report.Way{"db-0": report.Unchanged, "db-1": report.Unchanged, "db-2": report.Delete}))

		planned = planOf(w, set, func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To[int32](5) })
		Expect(planned.Notes).To(ContainElement("2 pods are created"))
		Expect(w.audit.Writes()).To(BeEmpty())
	})

	It("looks for room on the nodes and in the quotas", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, builders.StatefulSet("", "db", oldImage).Replicas(2).With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
		}).Build())
		w.settle(set)
		pods := &corev1.PodList{}
		Expect(w.api.List(ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
		for i := range pods.Items {
			mutateStatus(w, &pods.Items[i], func(pod *corev1.Pod) { // what a kubelet that can resize says
				status := &pod.Status.ContainerStatuses[0]
				status.Resources, status.AllocatedResources = &pod.Spec.Containers[0].Resources, pod.Spec.Containers[0].Resources.Requests
			})
		}
		Expect(w.plan(set, requests("2")).Refusals).To(ContainElement(ContainSubstring("not found")), "there is no such node")

		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}}
		Expect(w.api.Create(ctx, node)).To(Succeed())
		DeferCleanup(func() { Expect(w.api.Delete(w.ctx, node)).To(Succeed()) })
		mutateStatus(w, node, func(node *corev1.Node) {
			node.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
		})
		feasibility := func(cpu string) []string {
			var said []string
			for _, pod := range w.plan(set, requests(cpu)).Pods {
				said = append(said, string(pod.Feasibility))
			}
			return said
		}
		Expect(feasibility("1500m")).To(Equal([]string{"Fits", "Fits"}))
		Expect(feasibility("2")).To(ConsistOf("Fits", "Deferred"), "one of them takes the room")
		Expect(w.plan(set, requests("4")).Pods).To(HaveEach(HaveField("Way", report.Refused)), "no node could ever hold it")

		quota := create(w, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Name: "small"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"requests.cpu": resource.MustParse("2500m")}},
		})
		mutateStatus(w, quota, func(quota *corev1.ResourceQuota) {
			quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{"requests.cpu": resource.MustParse("2")}
		})
		Expect(w.plan(set, requests("1100m")).Refusals).To(BeEmpty())
		Expect(w.plan(set, requests("1500m")).Refusals).To(ContainElement(ContainSubstring("quota small has 500m of requests.cpu left")))
	})

	It("of a workload of Kubernetes says who drives it", func(ctx SpecContext) {
		w := newWorld(ctx)
		Expect(w.plan(w.deployment(optedIn()), image(newImage)).Pods).To(HaveEach(HaveField("Way", report.InPlace)))

		w = newWorld(ctx)
		planned := w.plan(w.deployment(nil), image(newImage))
		Expect(planned.Pods).To(HaveLen(2))
		Expect(planned.Pods).To(HaveEach(And(HaveField("Way", report.Recreate), HaveField("Message", ContainSubstring("insitu.dev/update-policy")))))
		Expect(w.audit.Writes()).To(BeEmpty())
	})

	It("says when no pod may be restarted", func(ctx SpecContext) {
		w := newWorld(ctx)
		ds := w.daemonSet(optedIn())
		ds.Labels[nativeapi.UpdatePolicyLabel] = "InPlaceOnly"
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1))}
		Expect(w.api.Update(ctx, ds)).To(Succeed())
		Expect(w.plan(ds, image(newImage)).Refusals).To(ConsistOf(ContainSubstring("maxUnavailable is 0, so no pod may be restarted")))
	})

	It("knows that a Deployment has room by a pod more", func(ctx SpecContext) {
		w := newWorld(ctx)
		d := w.deployment(optedIn())
		d.Labels[nativeapi.UpdatePolicyLabel] = "InPlaceOnly"
		d.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{MaxUnavailable: ptr.To(intstr.FromInt32(0)), MaxSurge: ptr.To(intstr.FromInt32(1))}
		Expect(w.api.Update(ctx, d)).To(Succeed())
		planned := w.plan(d, image(newImage))
		Expect(planned.Refusals).To(BeEmpty())
		Expect(planned.Pods).To(HaveEach(HaveField("Way", report.InPlace)))
		Expect(planned.Changes).To(ConsistOf(ContainSubstring("image")))
	})

	It("of a paused workload says what comes when it is resumed", func(ctx SpecContext) {
		w := newWorld(ctx)
		set := create(w, builders.StatefulSet("", "db", oldImage).With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Paused = true
		}).Build())
		w.settle(set)
		planned := w.plan(set, image(newImage))
		Expect(planned.Notes).To(ContainElement(ContainSubstring("paused")))
		Expect(planned.Pods).To(HaveEach(HaveField("Way", report.InPlace)))
	})
})
