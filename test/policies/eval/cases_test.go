// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/policies/eval"
)

// TestCases has each write of the tables evaluated in every order of the policies, for
// the API server has no order of its own. What it refuses when it validates is not here.
func TestCases(t *testing.T) {
	set := newSet(t).Strict()
	forEachCase(t, func(t *testing.T, kind string, one policies.Case) {
		t.Helper()
		for _, order := range orders(of(kind, set.Names())) {
			asked := request(one)
			asked.Order = order
			got, err := set.Admit(t.Context(), asked)

			NewWithT(t).Expect(err).NotTo(HaveOccurred(), "in the order %q", order)
			if one.Refused == "" {
				NewWithT(t).Expect(text(t, got)).To(Equal(text(t, one.Want)), "in the order %q", order)
			}
		}
	})
}

// TestWithoutTheSwitch has nothing held that was not, and everything released that was:
// by the same writes, and to the same end.
func TestWithoutTheSwitch(t *testing.T) {
	set := newSet(t).Strict()
	forEachCase(t, func(t *testing.T, _ string, one policies.Case) {
		t.Helper()
		g := NewWithT(t)
		asked := request(one)
		asked.Params, asked.Webhook = nil, nil
		got, err := set.Admit(t.Context(), asked)
		g.Expect(err).NotTo(HaveOccurred())

		switch _, stays := one.Want.GetLabels()[native.HeldLabel]; {
		case !isHeld(one.Old):
			g.Expect(text(t, got)).To(Equal(text(t, one.New)), "the write goes through as it is")
		case !stays && one.Refused == "" && one.Webhook == nil:
			g.Expect(text(t, got)).To(Equal(text(t, one.Want)))
		}
	})
}

// TestEveryNumberOfPolicies leaves out any of the policies, as an installation does that
// is half done: nothing fails, and a release never needs the others.
func TestEveryNumberOfPolicies(t *testing.T) {
	set := newSet(t).Strict()
	forEachCase(t, func(t *testing.T, kind string, one policies.Case) {
		t.Helper()
		for _, order := range orders(of(kind, set.Names())) {
			for n := range len(order) {
				asked := request(one)
				asked.Order = order[:n]
				got, err := set.Admit(t.Context(), asked)

				NewWithT(t).Expect(err).NotTo(HaveOccurred())
				_, stays := one.Want.GetLabels()[native.HeldLabel]
				if n > 0 && strings.Contains(strings.Join(asked.Order, " "), "release") && isHeld(one.Old) && !stays && one.Refused == "" {
					NewWithT(t).Expect(text(t, got)).To(Equal(text(t, one.Want)), "with %q", asked.Order)
				}
			}
		}
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

func forEachCase(t *testing.T, check func(*testing.T, string, policies.Case)) {
	t.Helper()
	cases, err := policies.Cases()
	must(t, err)
	for kind, ofKind := range cases {
		for _, one := range ofKind {
			t.Run(kind+"/"+one.Name, func(t *testing.T) { check(t, kind, one) })
		}
	}
}

// request is a write of an object that has a name, in a cluster with the switch.
func request(one policies.Case) eval.Request {
	for _, obj := range []client.Object{one.Old, one.New, one.Want} {
		obj.SetNamespace(metav1.NamespaceDefault)
		obj.SetName("case")
	}

	return eval.Request{
		Old: one.Old, New: one.New, FieldManager: one.Manager, Webhook: one.Webhook,
		Params: []client.Object{policies.Alive()},
	}
}

// of returns the policies of a kind.
func of(kind string, names []string) []string {
	var some []string
	for _, name := range names {
		if strings.HasSuffix(name, "-"+strings.ToLower(kind)+"s") {
			some = append(some, name)
		}
	}

	return some
}

// orders returns all orders of names.
func orders(names []string) [][]string {
	if len(names) == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i, first := range names {
		others := append(append([]string{}, names[:i]...), names[i+1:]...)
		for _, rest := range orders(others) {
			all = append(all, append([]string{first}, rest...))
		}
	}

	return all
}

func isHeld(obj client.Object) bool { return obj.GetLabels()[native.HeldLabel] != "" }

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
