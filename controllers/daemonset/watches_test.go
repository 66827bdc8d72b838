// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

// What the builder of controllers makes of Owns: pods that an old release of OpenKruise made name
// the version v1alpha1, and their events are ours.
func TestEventsOfPodsOfAnyVersion(t *testing.T) {
	scheme := runtime.NewScheme()
	NewWithT(t).Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, served := range []string{"v1beta1", "v1alpha1"} {
		mapper.Add(kind.GroupKind().WithVersion(served), meta.RESTScopeNamespace)
	}
	for name, test := range map[string]struct {
		owner metav1.OwnerReference
		want  int
	}{
		"v1beta1":       {metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "DaemonSet"}, 1},
		"v1alpha1":      {metav1.OwnerReference{APIVersion: "apps.kruise.io/v1alpha1", Kind: "DaemonSet"}, 1},
		"another group": {metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet"}, 0},
		"another kind":  {metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "CloneSet"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			test.owner.Name, test.owner.UID, test.owner.Controller = "logs", "1", new(true)
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "logs-x", OwnerReferences: []metav1.OwnerReference{test.owner}}}
			queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
			defer queue.ShutDown()
			handler.EnqueueRequestForOwner(scheme, mapper, &appsv1beta1.DaemonSet{}, handler.OnlyControllerOwner()).
				Create(t.Context(), event.CreateEvent{Object: pod}, queue)
			g.Expect(queue.Len()).To(Equal(test.want))
			if test.want > 0 {
				request, _ := queue.Get()
				g.Expect(request.NamespacedName).To(Equal(types.NamespacedName{Namespace: "shop", Name: "logs"}))
			}
		})
	}
}

// The kubelet writes its conditions every few minutes: sets are looked at when one of them changes
// what is done on the node.
func TestWhatChangesANode(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Node)
		passes bool
	}{
		"a label": {func(n *corev1.Node) { n.Labels = map[string]string{"disk": "fast"} }, true},
		"a taint": {func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		}, true},
		"not ready":   {func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, true},
		"a heartbeat": {func(n *corev1.Node) { n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(builders.Start) }, false},
		"pressure": {func(n *corev1.Node) {
			n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
		}, false},
		"an image": {func(n *corev1.Node) { n.Status.Images = []corev1.ContainerImage{{Names: []string{"nginx"}}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := nodeNamed("a", nil)
			after := before.DeepCopy()
			test.change(after)
			NewWithT(t).Expect(nodeChanged().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after})).To(Equal(test.passes))
		})
	}
	NewWithT(t).Expect(nodeChanged().Create(event.CreateEvent{Object: nodeNamed("a", nil)})).To(BeTrue())
	NewWithT(t).Expect(nodeChanged().Delete(event.DeleteEvent{Object: nodeNamed("a", nil)})).To(BeTrue())
}

// A node is about all sets, and a pod without a controller about those of its namespace that select it.
func TestWhichSetsAnObjectIsAbout(t *testing.T) {
	g := NewWithT(t)
	scheme := runtime.NewScheme()
	g.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		builders.DaemonSet("shop", "logs", "nginx").Build(), builders.DaemonSet("shop", "metrics", "nginx").Build(), builders.DaemonSet("bank", "logs", "nginx").Build(),
	).Build()
	r := NewReconciler(c, c, workload.SilentRecorder(), testingclock.NewFakePassiveClock(time.Time{}), nil)
	keys := func(requests []reconcile.Request) []string {
		var found []string
		for _, request := range requests {
			found = append(found, request.String())
		}
		return found
	}
	g.Expect(keys(r.allSets(t.Context(), nodeNamed("a", nil)))).To(ConsistOf("shop/logs", "shop/metrics", "bank/logs"))

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "stray", Labels: map[string]string{"app": "logs"}}}
	g.Expect(keys(r.adoptingSets(t.Context(), pod))).To(ConsistOf("shop/logs"))
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))}
	g.Expect(r.adoptingSets(t.Context(), client.Object(pod))).To(BeEmpty())
}
