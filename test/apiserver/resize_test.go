// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// resizePolicies are ways to write a policy for resizes. Together they hold every
// value of every field, and the bounds of numbers.
func resizePolicies() []string {
	return []string{
		`{}`,
		`{onDeferred: Wait, onInfeasible: Keep, onError: Keep, drift: Leave}`,
		`{onDeferred: Recreate, onInfeasible: Recreate, onError: Recreate, drift: Enforce}`,
		`{deferredTimeoutSeconds: 1, maxConcurrent: 1}`,
		`{deferredTimeoutSeconds: 2147483647, maxConcurrent: 2147483647}`,
		`{maxConcurrent: "1%"}`,
		`{maxConcurrent: "25%"}`,
		`{maxConcurrent: "100%"}`,
	}
}

// TestResizePolicies writes them in every place that has one, in both versions,
// and checks that they are stored as they were written, with nothing beside.
func TestResizePolicies(t *testing.T) {
	c := strictClient(t)

	for base, places := range map[string][]string{valid: {nested}, validCloneSet: {flat, nested}} {
		for _, place := range places {
			for _, version := range versions() {
				for _, policy := range resizePolicies() {
					path := place + ".inPlaceUpdateStrategy.resize"
					written := patchOf(t, base, version, at(path, policy))
					t.Run(version+"/"+written.GetKind()+"/"+place+"/"+policy, func(t *testing.T) {
						stored := written.DeepCopy()

						must(t, c.Create(t.Context(), stored, client.DryRunAll))

						NewWithT(t).Expect(fieldAt(t, stored, path)).To(Equal(fieldAt(t, written, path)))
					})
				}
			}
		}
	}
}

// fieldAt returns the field at a path, which must be there.
func fieldAt(t *testing.T, object *unstructured.Unstructured, path string) any {
	t.Helper()

	value, found, err := unstructured.NestedFieldNoCopy(object.Object, strings.Split(path, ".")...)
	must(t, err)

	if !found {
		t.Fatalf("the object has no field %s", path)
	}

	return value
}
