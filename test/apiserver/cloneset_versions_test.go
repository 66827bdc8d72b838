// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/insitu-dev/insitu/apis/apps/v1alpha1"
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// everyCloneSetField are the manifests that together hold every field of ours.
var everyCloneSetField = []string{"testdata/cloneset-flat-everything.yaml", "testdata/cloneset-nested-everything.yaml"}

// readCloneSet returns a manifest in a version.
func readCloneSet(t *testing.T, file, version string) *unstructured.Unstructured {
	t.Helper()

	raw, err := os.ReadFile(file)
	must(t, err)

	object := parse(t, string(raw))
	object.SetAPIVersion(version)
	object.SetNamespace("default")

	return object
}

// TestCloneSetRoundTrip writes every field through one version, changes one with
// a typed client of the other, and reads the first again.
func TestCloneSetRoundTrip(t *testing.T) {
	c := strictClient(t)
	older, newer := appsv1alpha1.GroupVersion.String(), appsv1beta1.GroupVersion.String()

	scaleOlder := func(key client.ObjectKey) {
		typed := &appsv1alpha1.CloneSet{}
		must(t, c.Get(t.Context(), key, typed))
		typed.Spec.Replicas = ptr.To[int32](7)
		must(t, c.Update(t.Context(), typed))
	}
	scaleNewer := func(key client.ObjectKey) {
		typed := &appsv1beta1.CloneSet{}
		must(t, c.Get(t.Context(), key, typed))
		typed.Spec.Replicas = ptr.To[int32](7)
		must(t, c.Update(t.Context(), typed))
	}

	for _, test := range []struct {
		version string
		scale   func(client.ObjectKey)
	}{{older, scaleNewer}, {newer, scaleOlder}} {
		for _, file := range everyCloneSetField {
			t.Run(test.version+"/"+filepath.Base(file), func(t *testing.T) {
				g := NewWithT(t)
				written := readCloneSet(t, file, test.version)
				created(t, c, written.DeepCopy())

				test.scale(client.ObjectKeyFromObject(written))

				read := &unstructured.Unstructured{}
				read.SetGroupVersionKind(written.GroupVersionKind())
				must(t, c.Get(t.Context(), client.ObjectKeyFromObject(written), read))

				must(t, unstructured.SetNestedField(written.Object, int64(7), "spec", "replicas"))
				g.Expect(missing("", written.Object, read.Object)).To(BeEmpty())
			})
		}
	}
}

// TestCloneSetTypesCoverTheSchema reads the fullest manifests into the Go types
// and back again: a field that the schema accepts and the types do not have would
// be lost.
func TestCloneSetTypesCoverTheSchema(t *testing.T) {
	c := strictClient(t)

	for _, file := range everyCloneSetField {
		t.Run(filepath.Base(file), func(t *testing.T) {
			g := NewWithT(t)
			object := readCloneSet(t, file, appsv1beta1.GroupVersion.String())
			created(t, c, object)

			older := &appsv1alpha1.CloneSet{}
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), older))
			newer := &appsv1beta1.CloneSet{}
			must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), newer))

			g.Expect(older.Spec).To(Equal(newer.Spec))

			must(t, c.Update(t.Context(), newer))
			g.Expect(newer.Generation).To(Equal(int64(1)), "writing the typed object back must change nothing")
		})
	}
}

// TestCloneSetManifestsMean reads what users write the way the operator does.
func TestCloneSetManifestsMean(t *testing.T) {
	g := NewWithT(t)
	c := strictClient(t)

	typed := func(file string) *appsv1beta1.CloneSet {
		object := readCloneSet(t, file, appsv1alpha1.GroupVersion.String())
		created(t, c, object)

		set := &appsv1beta1.CloneSet{}
		must(t, c.Get(t.Context(), client.ObjectKeyFromObject(object), set))

		return set
	}

	flat := typed("testdata/cloneset-flat-everything.yaml")
	g.Expect(flat.GetPodUpdatePolicy()).To(Equal(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType))
	g.Expect(flat.GetPartition()).To(Equal(int32(3)))
	g.Expect(flat.GetMaxUnavailable()).To(BeZero())
	g.Expect(flat.GetMaxSurge()).To(Equal(int32(8)))
	g.Expect(flat.IsPaused()).To(BeTrue())
	g.Expect(flat.ReusesClaims()).To(BeTrue())
	g.Expect(flat.ExcludesPreparingDelete()).To(BeTrue())

	nested := typed("testdata/cloneset-nested-everything.yaml")
	g.Expect(nested.GetPodUpdatePolicy()).To(Equal(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
	g.Expect(nested.GetPartition()).To(Equal(int32(2)))
	g.Expect(nested.GetMaxUnavailable()).To(Equal(int32(5)))
	g.Expect(nested.GetMaxSurge()).To(BeZero())
	g.Expect(nested.ReusesClaims()).To(BeFalse())
	g.Expect(nested.ExcludesPreparingDelete()).To(BeTrue())
}
