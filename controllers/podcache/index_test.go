// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// builderIndexer adds indexes to a fake client.
type builderIndexer struct {
	*fake.ClientBuilder
}

func (b builderIndexer) IndexField(_ context.Context, obj client.Object, field string, extract client.IndexerFunc) error {
	b.WithIndex(obj, field, extract)

	return nil
}

func readerOf(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	builder := fake.NewClientBuilder().WithObjects(objects...)
	if err := AddIndexes(t.Context(), builderIndexer{builder}); err != nil {
		t.Fatal(err)
	}

	return builder.Build()
}

func ownedBy(uid types.UID, controller bool) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "apps.kruise.io/v1beta1", Kind: "StatefulSet", Name: "web", UID: uid, Controller: ptr.To(controller)}}
}

func meta(namespace, name string, owners []metav1.OwnerReference) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, OwnerReferences: owners}
}

func TestByOwnerAndOrphans(t *testing.T) {
	g := NewWithT(t)
	reader := readerOf(t,
		&corev1.Pod{ObjectMeta: meta("shop", "web-0", ownedBy("1", true))},
		&corev1.Pod{ObjectMeta: meta("shop", "earlier-0", ownedBy("2", true))},
		&corev1.Pod{ObjectMeta: meta("shop", "watched-0", ownedBy("1", false))},
		&corev1.Pod{ObjectMeta: meta("shop", "alone", nil)},
		&corev1.Pod{ObjectMeta: meta("bank", "alone", nil)},
		&appsv1.ControllerRevision{ObjectMeta: meta("shop", "web-a", ownedBy("1", true))},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("shop", "data-web-0", ownedBy("1", true))},
		&corev1.PersistentVolumeClaim{ObjectMeta: meta("shop", "data-web-1", nil)},
		&appsv1.ReplicaSet{ObjectMeta: meta("shop", "web-b", ownedBy("1", true))},
		&appsv1.ReplicaSet{ObjectMeta: meta("shop", "alone", nil)},
	)
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1"}}

	pods := &corev1.PodList{}
	g.Expect(ByOwner(t.Context(), reader, owner, pods)).To(Succeed())
	g.Expect(names(pods.Items)).To(ConsistOf("web-0"))

	revisions := &appsv1.ControllerRevisionList{}
	g.Expect(ByOwner(t.Context(), reader, owner, revisions)).To(Succeed())
	g.Expect(revisions.Items).To(HaveLen(1))

	claims := &corev1.PersistentVolumeClaimList{}
	g.Expect(ByOwner(t.Context(), reader, owner, claims)).To(Succeed())
	g.Expect(claims.Items).To(HaveLen(1))

	replicaSets := &appsv1.ReplicaSetList{}
	g.Expect(ByOwner(t.Context(), reader, owner, replicaSets)).To(Succeed())
	g.Expect(replicaSets.Items).To(ConsistOf(HaveField("Name", "web-b")))

	orphans := &corev1.PodList{}
	g.Expect(Orphans(t.Context(), reader, "shop", orphans)).To(Succeed())
	g.Expect(names(orphans.Items)).To(ConsistOf("watched-0", "alone"))
}

func TestByOwnerAppliesFurtherOptions(t *testing.T) {
	g := NewWithT(t)
	labeled := &corev1.Pod{ObjectMeta: meta("shop", "web-1", ownedBy("1", true))}
	labeled.Labels = map[string]string{"app": "web"}
	reader := readerOf(t, labeled, &corev1.Pod{ObjectMeta: meta("shop", "web-0", ownedBy("1", true))})
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: "1"}}

	pods := &corev1.PodList{}
	g.Expect(ByOwner(t.Context(), reader, owner, pods, client.MatchingLabels{"app": "web"})).To(Succeed())

	g.Expect(names(pods.Items)).To(ConsistOf("web-1"))
}

func TestByOwnerWithoutIndexSaysWhatItListed(t *testing.T) {
	g := NewWithT(t)
	reader := fake.NewClientBuilder().Build()
	owner := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: "1"}}

	err := ByOwner(t.Context(), reader, owner, &corev1.PodList{})

	g.Expect(err).To(MatchError(ContainSubstring("list *v1.PodList in namespace shop by owner 1")))
}

func TestPullers(t *testing.T) {
	g := NewWithT(t)
	puller := func(namespace, name, workload string) *corev1.Pod {
		pod := &corev1.Pod{ObjectMeta: meta(namespace, name, nil)}
		pod.Labels = map[string]string{appsv1beta1.PullerLabel: workload}
		return pod
	}
	reader := readerOf(t,
		puller("shop", "web-pull-a", "1"), puller("shop", "db-pull-a", "2"), puller("bank", "web-pull-a", "1"),
		puller("shop", "web-pull-b", appsv1beta1.PullerOfPlan),
		&corev1.Pod{ObjectMeta: meta("shop", "web-0", ownedBy("1", true))},
	)
	workload := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", UID: "1"}}

	pods := &corev1.PodList{}
	g.Expect(Pullers(t.Context(), reader, workload, pods)).To(Succeed())
	g.Expect(names(pods.Items)).To(ConsistOf("web-pull-a"))
	g.Expect(AllPullers(t.Context(), reader, pods)).To(Succeed())
	g.Expect(names(pods.Items)).To(ConsistOf("web-pull-a", "web-pull-a", "db-pull-a"), "those of plans are not the manager's")
}

func TestDraining(t *testing.T) {
	g := NewWithT(t)
	pod := func(namespace, name string, status corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: meta(namespace, name, nil),
			Spec:       corev1.PodSpec{ReadinessGates: []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}}},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: appsv1beta1.InPlaceUpdateReady, Status: status}}},
		}
	}
	reader := readerOf(t,
		pod("shop", "web-0", corev1.ConditionFalse),
		pod("shop", "web-1", corev1.ConditionTrue),
		pod("bank", "web-2", corev1.ConditionFalse),
		&corev1.Pod{ObjectMeta: meta("shop", "alone", nil)},
	)

	pods := &corev1.PodList{}
	g.Expect(Draining(t.Context(), reader, "shop", pods)).To(Succeed())

	g.Expect(names(pods.Items)).To(ConsistOf("web-0"))
}

func TestServicesTo(t *testing.T) {
	yes, no := ptr.To(true), ptr.To(false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1"}}
	tests := map[string]struct {
		endpoints []discoveryv1.Endpoint
		want      []string
	}{
		"ready and serving": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: yes, Serving: yes, Terminating: no})},
			want:      []string{"web"},
		},
		"not ready": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: no, Serving: no, Terminating: no})},
		},
		"unknown": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{})},
			want:      []string{"web"},
		},
		"ready by an author that does not set serving": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: yes})},
			want:      []string{"web"},
		},
		"not ready by an author that does not set serving": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: no})},
		},
		"published although not ready": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: yes, Serving: no, Terminating: no})},
		},
		"terminating and still serving": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: no, Serving: yes, Terminating: yes})},
		},
		"another pod": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-1", "2", discoveryv1.EndpointConditions{Serving: yes})},
		},
		"a pod of the same name that was there before": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "0", discoveryv1.EndpointConditions{Serving: yes})},
		},
		"a target without a UID": {
			endpoints: []discoveryv1.Endpoint{endpoint("web-0", "", discoveryv1.EndpointConditions{Serving: yes})},
			want:      []string{"web"},
		},
		"something else of the same name": {
			endpoints: []discoveryv1.Endpoint{{TargetRef: &corev1.ObjectReference{Kind: "Node", Name: "web-0"}}},
		},
		"no target": {
			endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
		},
		"two addresses of a pod, one drained": {
			endpoints: []discoveryv1.Endpoint{
				endpoint("web-0", "1", discoveryv1.EndpointConditions{Serving: no}),
				endpoint("web-0", "1", discoveryv1.EndpointConditions{Serving: yes}),
			},
			want: []string{"web"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			whole := sliceOf("web", test.endpoints...)
			trimmed, err := trimEndpointSlice(whole.DeepCopy())
			g.Expect(err).NotTo(HaveOccurred())

			for _, slice := range []*discoveryv1.EndpointSlice{whole, trimmed.(*discoveryv1.EndpointSlice)} {
				services, err := ServicesTo(t.Context(), readerOf(t, slice), pod)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(services).To(HaveExactElements(test.want))
			}
		})
	}
}

func TestServicesToNamesEachServiceOnce(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1"}}
	serving := endpoint("web-0", "1", discoveryv1.EndpointConditions{Serving: ptr.To(true)})
	web, dual, admin, plain, elsewhere := sliceOf("web", serving), sliceOf("web", serving), sliceOf("admin", serving), sliceOf("own", serving), sliceOf("far", serving)
	dual.Name = "web-y"
	delete(plain.Labels, discoveryv1.LabelServiceName)
	elsewhere.Namespace = "bank"

	services, err := ServicesTo(t.Context(), readerOf(t, web, dual, admin, plain, elsewhere), pod)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(services).To(Equal([]string{"admin", "own-x", "web"}))
}

// A slice that is written by hand, or mirrored from Endpoints, may list a pod as
// ready for ever: a drain must not wait for it.
func TestServicesToLeavesOutSlicesThatDoNotFollowReadiness(t *testing.T) {
	g := NewWithT(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0", UID: "1"}}
	mirrored := sliceOf("leader", endpoint("web-0", "1", discoveryv1.EndpointConditions{Ready: ptr.To(true)}))
	mirrored.Labels[discoveryv1.LabelManagedBy] = "endpointslicemirroring-controller.k8s.io"

	services, err := ServicesTo(t.Context(), readerOf(t, mirrored), pod)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(services).To(BeEmpty())
	g.Expect(targetsOf(mirrored)).To(BeEmpty())
	trimmed, err := trimEndpointSlice(mirrored)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(trimmed).To(HaveField("Endpoints", BeEmpty()))
}

func TestOptions(t *testing.T) {
	g := NewWithT(t)

	g.Expect(Options(nil).DefaultNamespaces).To(BeEmpty(), "no namespaces means all")
	g.Expect(Options([]string{"shop", "bank"}).DefaultNamespaces).To(And(HaveLen(2), HaveKey("shop"), HaveKey("bank")))

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "x"}}}}
	out, err := Options(nil).DefaultTransform(claim)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out.(*corev1.PersistentVolumeClaim).ManagedFields).To(BeEmpty())
}

func names(pods []corev1.Pod) []string {
	result := make([]string, 0, len(pods))
	for i := range pods {
		result = append(result, pods[i].Name)
	}

	return result
}
