// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"os"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	appsv1alpha1 "github.com/insitu-dev/insitu/apis/apps/v1alpha1"
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/apiserver"
)

// server is the API server that all tests of this package share.
var server *rest.Config

func TestMain(m *testing.M) {
	os.Exit(apiserver.Main(m, func(config *rest.Config) { server = config }))
}

// versions are the served versions, which have the same rules.
func versions() []string {
	return []string{appsv1beta1.GroupVersion.String(), appsv1alpha1.GroupVersion.String()}
}

// strictClient returns a client that refuses unknown fields, as kubectl does.
func strictClient(t *testing.T) client.Client {
	t.Helper()

	scheme := runtime.NewScheme()
	must(t, appsv1alpha1.AddToScheme(scheme))
	must(t, appsv1beta1.AddToScheme(scheme))

	c, err := client.New(server, client.Options{Scheme: scheme})
	must(t, err)

	return client.WithFieldValidation(c, metav1.FieldValidationStrict)
}

// valid is the smallest set that the API server accepts, in Parallel order so
// that every field can be added to it.
const valid = `
kind: StatefulSet
metadata: {name: sample, namespace: default}
spec:
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: sample}}
  template:
    metadata: {labels: {app: sample}}
    spec:
      containers: [{name: main, image: "nginx:alpine"}]
`

// patched returns the valid set in a version after a JSON merge patch, written
// as YAML.
func patched(t *testing.T, version, patch string) *unstructured.Unstructured {
	t.Helper()

	return patchOf(t, valid, version, patch)
}

// patchOf returns a valid object in a version after a JSON merge patch.
func patchOf(t *testing.T, base, version, patch string) *unstructured.Unstructured {
	t.Helper()

	return mergePatch(t, parse(t, base+"apiVersion: "+version), patch)
}

// mergePatch returns a copy of an object after a JSON merge patch, written as YAML.
func mergePatch(t *testing.T, object *unstructured.Unstructured, patch string) *unstructured.Unstructured {
	t.Helper()

	if patch == "" {
		return object.DeepCopy()
	}

	original, err := object.MarshalJSON()
	must(t, err)
	changes, err := yaml.YAMLToJSON([]byte(patch))
	must(t, err)
	merged, err := jsonpatch.MergePatch(original, changes)
	must(t, err)

	return parse(t, string(merged))
}

// parse reads an object from YAML.
func parse(t *testing.T, manifest string) *unstructured.Unstructured {
	t.Helper()

	raw, err := yaml.YAMLToJSONStrict([]byte(manifest))
	must(t, err)

	object := &unstructured.Unstructured{}
	must(t, object.UnmarshalJSON(raw))

	return object
}

// created creates an object for the length of the test.
func created(t *testing.T, c client.Client, object client.Object) {
	t.Helper()

	must(t, c.Create(t.Context(), object))
	t.Cleanup(func() {
		if err := c.Delete(context.WithoutCancel(t.Context()), object); err != nil {
			t.Errorf("delete: %v", err)
		}
	})
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}
