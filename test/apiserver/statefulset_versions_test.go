// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"os"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/insitu-dev/insitu/apis/apps/v1alpha1"
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestRoundTrip writes every field through the older version, changes one with
// a typed client of the stored version, and reads the older version again.
func TestRoundTrip(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)

	raw, err := os.ReadFile("testdata/everything.yaml")
	must(t, err)

	written := parse(t, string(raw))
	written.SetAPIVersion(appsv1alpha1.GroupVersion.String())
	written.SetNamespace("default")
	written.SetName("round-trip")
	created(t, c, written.DeepCopy())

	typed := &appsv1beta1.StatefulSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(written), typed))
	g.Expect(typed.Spec.Replicas).To(HaveValue(Equal(int32(5))))
	typed.Spec.Replicas = ptr.To[int32](7)
	must(t, c.Update(t.Context(), typed))

	read := &unstructured.Unstructured{}
	read.SetGroupVersionKind(appsv1alpha1.GroupVersion.WithKind("StatefulSet"))
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(written), read))

	must(t, unstructured.SetNestedField(written.Object, int64(7), "spec", "replicas"))
	g.Expect(missing("", written.Object, read.Object)).To(BeEmpty())
}

// TestTypesCoverTheSchema reads the fullest manifest into the Go types and back
// again: a field that the schema accepts and the types do not have would be
// lost by the operator's first write.
func TestTypesCoverTheSchema(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)

	raw, err := os.ReadFile("testdata/everything.yaml")
	must(t, err)

	object := parse(t, string(raw))
	object.SetNamespace("default")
	object.SetName("typed")
	created(t, c, object)

	older := &appsv1alpha1.StatefulSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), older))
	newer := &appsv1beta1.StatefulSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), newer))

	g.Expect(older.Spec).To(Equal(newer.Spec))

	must(t, c.Update(t.Context(), newer))
	g.Expect(newer.Generation).To(Equal(int64(1)), "writing the typed object back must change nothing")
}

// TestQuantitiesReachTheTypes checks that every spelling of a quantity that the
// schema accepts can be read by a typed client. If it could not, one such
// object would break the informers of the operator.
func TestQuantitiesReachTheTypes(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)

	raw, err := os.ReadFile("testdata/quantities.yaml")
	must(t, err)

	object := parse(t, string(raw))
	object.SetNamespace("default")
	object.SetName("typed-quantities")
	created(t, c, object)

	typed := &appsv1beta1.StatefulSet{}
	must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), typed))

	resources := typed.Spec.Template.Spec.Containers[0].Resources
	g.Expect(resources.Requests.Cpu().MilliValue()).To(Equal(int64(500)))
	g.Expect(resources.Requests.Memory().Value()).To(Equal(int64(1000)))
	g.Expect(resources.Limits.Cpu().Value()).To(Equal(int64(2)))
	g.Expect(resources.Limits.Memory().Value()).To(Equal(int64(1536 << 20)))
	g.Expect(typed.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().Value()).To(Equal(int64(1 << 30)))
}
