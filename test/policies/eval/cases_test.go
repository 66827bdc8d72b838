// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/policies/eval"
)

// TestCases has the tables evaluated without a server. What a server refuses when it
// validates is not here.
func TestCases(t *testing.T) {
	set := newSet(t)
	forEachCase(t, func(t *testing.T, one policies.Case) {
		t.Helper()
		if one.Refused != "" {
			return
		}
		got, err := set.Admit(t.Context(), request(one))

		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(text(t, got)).To(Equal(text(t, one.Want)))
	})
}

func newSet(t *testing.T) *eval.Set {
	t.Helper()
	objects, err := policies.Objects()
	must(t, err)
	set, err := eval.Load(objects)
	must(t, err)

	return set
}

func forEachCase(t *testing.T, check func(*testing.T, policies.Case)) {
	t.Helper()
	cases, err := policies.Cases()
	must(t, err)
	for kind, ofKind := range cases {
		for _, one := range ofKind {
			t.Run(kind+"/"+one.Name, func(t *testing.T) { check(t, one) })
		}
	}
}

// request is a write of an object that has a name.
func request(one policies.Case) eval.Request {
	for _, obj := range []client.Object{one.Old, one.New, one.Want} {
		obj.SetNamespace(metav1.NamespaceDefault)
		obj.SetName("case")
	}

	return eval.Request{Old: one.Old, New: one.New}
}

// text returns what the user or the policies decide of an object.
func text(t *testing.T, obj client.Object) string {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	must(t, err)
	delete(fields, "status")
	data, err := yaml.Marshal(withoutEmpty(fields))
	must(t, err)

	return string(data)
}

// withoutEmpty removes maps that are as good as absent.
func withoutEmpty(fields map[string]any) map[string]any {
	for key, value := range fields {
		if inner, isMap := value.(map[string]any); isMap && len(withoutEmpty(inner)) == 0 || value == nil {
			delete(fields, key)
		}
	}

	return fields
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
