// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/gates"
	"github.com/insitu-dev/insitu/test/stage"
)

// world is a namespace without the controllers of Kubernetes: what they would make
// the specs make.
type world struct {
	ctx       context.Context
	namespace string
	api       client.Client
	// outside writes what the cache does not have, or will not: api would wait to
	// see it there.
	outside    client.Client
	live       *reads
	manager    *stage.Manager
	reconciler *gates.Reconciler
	clock      *clocktesting.FakeClock
}

func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	outside, err := client.New(server.Config(), client.Options{Scheme: shared.GetScheme()})
	Expect(err).NotTo(HaveOccurred())
	w := &world{
		ctx: context.WithoutCancel(ctx), api: shared.GetClient(), outside: outside, clock: clocktesting.NewFakeClock(time.Now()),
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "gates-"}}
	Expect(w.api.Create(ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.manager, w.live = stage.NewManager(w.api), &reads{Reader: shared.GetAPIReader()}
	w.reconciler = gates.NewReconciler(w.manager, w.live, w.clock)
	return w
}

// reads counts what is read from the API server.
type reads struct {
	client.Reader

	count int
}

func (r *reads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	r.count++
	return r.Reader.Get(ctx, key, into, options...)
}

// The labels of workloads.
var (
	foreign = map[string]string(nil)
	atRest  = map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"}
	held    = map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible", native.HeldLabel: native.Held}
)

func template() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "sample"}}, Spec: podSpec()}
}

func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		ReadinessGates: []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}},
		Containers:     []corev1.Container{{Name: "main", Image: "nginx"}},
	}
}

func (w *world) meta(labels map[string]string, owner client.Object) metav1.ObjectMeta {
	GinkgoHelper()
	meta := metav1.ObjectMeta{Namespace: w.namespace, Name: "sample", Labels: labels}
	if owner != nil {
		kind, err := apiutil.GVKForObject(owner, w.api.Scheme())
		Expect(err).NotTo(HaveOccurred())
		meta.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	}
	return meta
}

var selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sample"}}

func create[T client.Object](w *world, object T) T {
	GinkgoHelper()
	Expect(w.api.Create(w.ctx, object)).To(Succeed())
	return object
}

// createWorkload creates a workload, which may be none that the cache has.
func createWorkload[T client.Object](w *world, object T) T {
	GinkgoHelper()
	if object.GetLabels() != nil {
		return create(w, object)
	}
	Expect(w.outside.Create(w.ctx, object)).To(Succeed())
	return object
}

func (w *world) deployment(labels map[string]string) *appsv1.Deployment {
	GinkgoHelper()
	return createWorkload(w, &appsv1.Deployment{
		ObjectMeta: w.meta(labels, nil), Spec: appsv1.DeploymentSpec{Selector: selector, Template: template()},
	})
}

// replicaSet creates a ReplicaSet of a Deployment, or one without an owner.
func (w *world) replicaSet(owner client.Object) *appsv1.ReplicaSet {
	GinkgoHelper()
	return create(w, &appsv1.ReplicaSet{
		ObjectMeta: w.meta(nil, owner), Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template()},
	})
}

func (w *world) statefulSet(labels map[string]string) *appsv1.StatefulSet {
	GinkgoHelper()
	return createWorkload(w, &appsv1.StatefulSet{
		ObjectMeta: w.meta(labels, nil), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template()},
	})
}

func (w *world) daemonSet(labels map[string]string) *appsv1.DaemonSet {
	GinkgoHelper()
	return createWorkload(w, &appsv1.DaemonSet{
		ObjectMeta: w.meta(labels, nil), Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template()},
	})
}

// ofKind changes the kind of the controller of an object.
func ofKind[T client.Object](object T, kind schema.GroupVersionKind) T {
	owner := &object.GetOwnerReferences()[0]
	owner.APIVersion, owner.Kind = kind.ToAPIVersionAndKind()
	return object
}

// pod creates the pod of an owner, with the gate and without its condition.
func (w *world) pod(owner client.Object) *corev1.Pod {
	GinkgoHelper()
	return create(w, &corev1.Pod{ObjectMeta: w.meta(selector.MatchLabels, owner), Spec: podSpec()})
}

// drained creates the pod of an owner that was taken out of service.
func (w *world) drained(owner client.Object) *corev1.Pod {
	GinkgoHelper()
	pod := w.pod(owner)
	w.setGate(pod, corev1.ConditionFalse)
	return pod
}

func (w *world) setGate(pod *corev1.Pod, status corev1.ConditionStatus) {
	GinkgoHelper()
	before := pod.DeepCopy()
	pod.Status.Conditions = []corev1.PodCondition{{Type: appsv1beta1.InPlaceUpdateReady, Status: status, LastTransitionTime: metav1.Now()}}
	Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// setCondition adds a condition that the kubelet sets.
func (w *world) setCondition(pod *corev1.Pod, condition corev1.PodConditionType, status corev1.ConditionStatus) {
	GinkgoHelper()
	before := pod.DeepCopy()
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: condition, Status: status, LastTransitionTime: metav1.NewTime(w.clock.Now()),
	})
	Expect(w.api.Status().Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// gate returns the status of the gate of the pod; empty if it is not set.
func (w *world) gate() corev1.ConditionStatus {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(w.live.Reader.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "sample"}, pod)).To(Succeed())
	return stage.PodConditionStatus(pod, appsv1beta1.InPlaceUpdateReady)
}

// reconcile reconciles the pod once.
func (w *world) reconcile() ctrl.Result {
	GinkgoHelper()
	result, err := w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: w.namespace, Name: "sample"}})
	Expect(err).NotTo(HaveOccurred())
	return result
}

// relabel sets the labels of a workload.
func (w *world) relabel(object client.Object, labels map[string]string) {
	GinkgoHelper()
	before := object.DeepCopyObject().(client.Object)
	object.SetLabels(labels)
	Expect(w.outside.Patch(w.ctx, object, client.MergeFrom(before))).To(Succeed())
}
