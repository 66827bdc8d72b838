// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

func metaOf(name string, controller *metav1.OwnerReference) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}
	if controller != nil {
		m.OwnerReferences = []metav1.OwnerReference{*controller}
	}
	return m
}

func controlledBy(kind, name string) *metav1.OwnerReference {
	return &metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: types.UID(name), Controller: ptr.To(true)}
}

func pullerOf(name, workload string, controller *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metaOf(name, controller)}
	pod.Labels = map[string]string{appsv1beta1.PullerLabel: workload}
	return pod
}

// newCluster is one as the cache of the manager shows it.
func newCluster(objects ...client.Object) client.Client {
	builder := fake.NewClientBuilder().WithObjects(objects...)
	for _, index := range podcache.Indexes() {
		builder = builder.WithIndex(index.Object, index.Field, index.Values)
	}
	return builder.Build()
}

func newReconcilerOf(kind Kind, c client.Client) *Reconciler {
	return NewReconciler(kind, c, c, workloads.SilentRecorder(), clocktesting.NewFakePassiveClock(builders.Start))
}

// A pod that pulls images brings its workload, whatever controls it, and also where the cache has none.
func TestPodsThatPullBringTheirWorkload(t *testing.T) {
	c := newCluster(
		&appsv1.ControllerRevision{ObjectMeta: metaOf("db-1", controlledBy("StatefulSet", "db"))},
		&appsv1.ControllerRevision{ObjectMeta: metaOf("log-1", controlledBy("DaemonSet", "log"))},
		&appsv1.ControllerRevision{ObjectMeta: metaOf("clone-1", &metav1.OwnerReference{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "clone", Controller: ptr.To(true)})},
		&appsv1.ControllerRevision{ObjectMeta: metaOf("left-1", nil)},
	)
	for name, test := range map[string]struct {
		kind Kind
		obj  client.Object
		want string
	}{
		"of a Deployment":                     {Deployment, pullerOf("p", "web", controlledBy("Deployment", "web")), "web"},
		"of a StatefulSet":                    {StatefulSet, pullerOf("p", "db", controlledBy("ControllerRevision", "db-1")), "db"},
		"of a DaemonSet":                      {DaemonSet, pullerOf("p", "log", controlledBy("ControllerRevision", "log-1")), "log"},
		"of another kind":                     {StatefulSet, pullerOf("p", "log", controlledBy("ControllerRevision", "log-1")), ""},
		"of a set that is not of Kubernetes":  {StatefulSet, pullerOf("p", "clone", controlledBy("ControllerRevision", "clone-1")), ""},
		"whose revision is gone":              {StatefulSet, pullerOf("p", "db", controlledBy("ControllerRevision", "db-0")), ""},
		"whose revision has no workload":      {StatefulSet, pullerOf("p", "left", controlledBy("ControllerRevision", "left-1")), ""},
		"without a controller":                {StatefulSet, pullerOf("p", "db", nil), ""},
		"not: a pod of one that is opted out": {StatefulSet, &corev1.Pod{ObjectMeta: metaOf("db-0", controlledBy("StatefulSet", "db"))}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var want []reconcile.Request
			if test.want != "" {
				want = []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: "shop", Name: test.want}}}
			}
			NewWithT(t).Expect(newReconcilerOf(test.kind, c).heldOwner(t.Context(), test.obj)).To(Equal(want))
		})
	}
}

// A workload that has no opt-in any more is not in the cache.
func TestPodsThatPullGoWithTheOptIn(t *testing.T) {
	g := NewWithT(t)
	c := newCluster(
		&appsv1.ControllerRevision{ObjectMeta: metaOf("db-1", controlledBy("StatefulSet", "db"))},
		pullerOf("db-pull-1", "db", controlledBy("ControllerRevision", "db-1")),
		pullerOf("web-pull-1", "web", controlledBy("Deployment", "web")),
		&corev1.Pod{ObjectMeta: metaOf("db-0", controlledBy("StatefulSet", "db"))},
	)
	_, err := newReconcilerOf(StatefulSet, c).Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "db"}})
	g.Expect(err).NotTo(HaveOccurred())
	left := &corev1.PodList{}
	g.Expect(c.List(t.Context(), left)).To(Succeed())
	g.Expect(left.Items).To(ConsistOf(HaveField("Name", "db-0"), HaveField("Name", "web-pull-1")))
}

func TestReleaseAllEndsPulls(t *testing.T) {
	g, out := NewWithT(t), &strings.Builder{}
	c := newCluster(
		pullerOf("web-pull-1", "web", controlledBy("Deployment", "web")),
		&corev1.Pod{ObjectMeta: metaOf("web-0", controlledBy("ReplicaSet", "web"))},
	)
	g.Expect(ReleaseAll(t.Context(), c, nil, out)).To(Succeed())
	left := &corev1.PodList{}
	g.Expect(c.List(t.Context(), left)).To(Succeed())
	g.Expect(left.Items).To(ConsistOf(HaveField("Name", "web-0")))
	g.Expect(out.String()).To(ContainSubstring("Deleted pod shop/web-pull-1, which pulled images\n"))
}

// The controllers of StatefulSets and DaemonSets take their reference off pods that the selector
// does not select.
func TestControllersOfPodsThatPull(t *testing.T) {
	for kind, want := range map[Kind]*metav1.OwnerReference{
		Deployment:  nil,
		StatefulSet: controlledBy("ControllerRevision", "web-b"),
		DaemonSet:   controlledBy("ControllerRevision", "web-b"),
	} {
		t.Run(string(kind), func(t *testing.T) {
			g := NewWithT(t)
			revision := daemonRevision("b", 2, "")
			revision.UID = "web-b"
			known, err := history.Read([]appsv1.ControllerRevision{daemonRevision("a", 1, ""), revision})
			g.Expect(err).NotTo(HaveOccurred())
			s := &scope{kind: kind, history: known, target: &inplace.Revision{Name: "b"}}
			if kind == StatefulSet {
				s.target.Name = "web-b"
			}
			g.Expect(s.pullerController()).To(Equal(want))
		})
	}
}

func TestPodsThatLackAnImage(t *testing.T) {
	g := NewWithT(t)
	waiting := func(reason string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}}}
	}
	g.Expect(lacksImage(&corev1.Pod{})).To(BeFalse())
	g.Expect(lacksImage(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: waiting("ContainerCreating")}})).To(BeFalse())
	g.Expect(lacksImage(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: waiting("ImagePullBackOff")}})).To(BeTrue())
	g.Expect(lacksImage(&corev1.Pod{Status: corev1.PodStatus{
		InitContainerStatuses: waiting("ErrImagePull"), ContainerStatuses: waiting("PodInitializing"),
	}})).To(BeTrue())
}

func TestImagesThatMayBeRequired(t *testing.T) {
	for value, want := range map[string]bool{
		"{}": true, `{"policy":"Require"}`: true, `{"policy":"Prefer"}`: false, `{"policy":"None"}`: false,
		"Require": true, "": true, `{"policy":"Require","timeoutSeconds":"600"}`: true,
	} {
		o := &scope{object: annotated(map[string]string{native.ImagePullAnnotation: value})}
		NewWithT(t).Expect(mayRequireImages(value)).To(Equal(want), "%q", value)
		NewWithT(t).Expect(o.mustStop()).To(Equal(want), "%q", value)
	}
}
