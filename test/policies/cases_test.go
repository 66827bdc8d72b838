// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/policies"
)

func TestCases(t *testing.T) {
	c := newClient(t)
	cases, err := policies.Cases()
	must(t, err)
	names := map[string]bool{}
	for kind, ofKind := range cases {
		for _, one := range ofKind {
			NewWithT(t).Expect(names).NotTo(HaveKey(kind + one.Name))
			names[kind+one.Name] = true
			if one.Webhook != nil || one.Gate != "" {
				continue // this server has neither; test/policies/eval has all
			}
			t.Run(kind+"/"+one.Name, func(t *testing.T) {
				check(t, c, one)
			})
		}
	}
}

// check creates the old object, which no policy looks at, and updates it in full.
func check(t *testing.T, c client.Client, one policies.Case) {
	t.Helper()
	g := NewWithT(t)
	stored := one.Old.DeepCopyObject().(client.Object)
	stored.SetNamespace(metav1.NamespaceDefault)
	stored.SetGenerateName("case-")
	g.Expect(policies.Create(t.Context(), c, stored)).To(Succeed())
	ctx := context.WithoutCancel(t.Context()) // that of the test ends before its cleanup
	t.Cleanup(func() { g.Expect(client.IgnoreNotFound(c.Delete(ctx, stored))).To(Succeed()) })
	expectSame(t, stored, one.Old)

	written := one.New.DeepCopyObject().(client.Object)
	written.SetNamespace(stored.GetNamespace())
	written.SetName(stored.GetName())
	written.SetResourceVersion(stored.GetResourceVersion())
	err := c.Update(t.Context(), written, client.FieldOwner(one.Manager))

	if one.Refused != "" {
		g.Expect(err).To(MatchError(ContainSubstring(one.Refused)))
		return
	}
	g.Expect(err).NotTo(HaveOccurred())
	expectSame(t, written, one.Want)
}

// expectSame compares what the user or the policies decide.
func expectSame(t *testing.T, got, want client.Object) {
	t.Helper()
	got, want = decided(t, got), decided(t, want)
	if equality.Semantic.DeepEqual(got, want) {
		return
	}
	NewWithT(t).Expect(text(t, got)).To(Equal(text(t, want)))
	t.Fatal("objects differ in what is not written")
}

// decided returns the labels, the annotations and the spec of an object, but for the
// annotation that the API server gives every DaemonSet.
func decided(t *testing.T, obj client.Object) client.Object {
	t.Helper()
	meta := metav1.ObjectMeta{Labels: obj.GetLabels(), Annotations: maps.Clone(obj.GetAnnotations())}
	delete(meta.Annotations, appsv1.DeprecatedTemplateGeneration)
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return &appsv1.Deployment{ObjectMeta: meta, Spec: workload.Spec}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: workload.Spec}
	case *appsv1.DaemonSet:
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: workload.Spec}
	}
	t.Fatalf("object of an unknown kind: %T", obj)

	return nil
}

func text(t *testing.T, obj client.Object) string {
	t.Helper()
	data, err := yaml.Marshal(obj)
	must(t, err)

	return string(data)
}
