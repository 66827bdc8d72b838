// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// TestCacheOfWorkloads asks a real API server what the selectors let through, in
// all namespaces and in one.
func TestCacheOfWorkloads(t *testing.T) {
	for _, namespace := range []string{"cached-a", "cached-b", "cached-c"} {
		createWorkloads(t, namespace)
	}
	for name, test := range map[string]struct {
		namespaces []string
		want       []string
	}{
		"everywhere": {want: []string{"cached-a", "cached-b", "cached-c"}},
		"in one":     {namespaces: []string{"cached-b"}, want: []string{"cached-b"}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			reader := startCache(t, test.namespaces)

			for _, list := range []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}} {
				g.Expect(reader.List(t.Context(), list)).To(Succeed())
				g.Expect(list).To(HaveField("Items", HaveLen(len(test.want))), "%T", list)
				for _, namespace := range test.want {
					g.Expect(list).To(HaveField("Items", ContainElement(And(
						HaveField("Namespace", namespace), HaveField("Name", "opted-in"), HaveField("ManagedFields", BeEmpty()),
					))))
				}
			}
			replicaSets := &appsv1.ReplicaSetList{}
			g.Expect(reader.List(t.Context(), replicaSets)).To(Succeed())
			g.Expect(replicaSets.Items).To(HaveLen(2 * len(test.want)))
			for i := range replicaSets.Items {
				g.Expect(podcache.HasTemplate(&replicaSets.Items[i])).To(Equal(replicaSets.Items[i].Name == "with-pods"))
			}
		})
	}
}

// createWorkloads makes a namespace with a workload of each kind that is opted in
// and one that is not, and with a ReplicaSet that is empty and one that is not.
func createWorkloads(t *testing.T, namespace string) {
	t.Helper()
	c, err := client.New(admin, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"app": "sample"}
	selector := &metav1.LabelSelector{MatchLabels: labels}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: namespace, Name: name} }
	objects := []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		&appsv1.ReplicaSet{ObjectMeta: named("with-pods"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](1), Selector: selector, Template: template}},
		&appsv1.ReplicaSet{ObjectMeta: named("empty"), Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](0), Selector: selector, Template: template}},
	}
	for name, optedIn := range map[string]map[string]string{"opted-in": {native.UpdatePolicyLabel: "any"}, "foreign": nil} {
		meta := named(name)
		meta.Labels = optedIn
		objects = append(objects,
			&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}},
			&appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template}},
			&appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template}},
		)
	}
	for _, obj := range objects {
		if err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
}

// startCache starts the manager's cache of some namespaces.
func startCache(t *testing.T, namespaces []string) client.Reader {
	t.Helper()
	reader, err := cache.New(admin, podcache.Options(namespaces))
	if err != nil {
		t.Fatal(err)
	}
	if err := podcache.AddIndexes(t.Context(), reader); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reader.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	if !reader.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache has not synced")
	}

	return reader
}
