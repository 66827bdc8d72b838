// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package eval_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/policies/eval"
)

// TestDrainCases has each write of the table evaluated by a policy that refuses what it
// cannot judge. Everything that is stored is compared.
func TestDrainCases(t *testing.T) {
	set := newSet(t).Strict()
	forEachDrainCase(t, func(t *testing.T, one policies.DrainCase) {
		t.Helper()
		got, err := set.Admit(t.Context(), drainRequest(one))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		NewWithT(t).Expect(whole(t, got)).To(Equal(whole(t, named(one.Wanted()))))
	})
}

// TestDrainWithoutTheSwitch has every write go through as it is.
func TestDrainWithoutTheSwitch(t *testing.T) {
	set := newSet(t).Strict()
	forEachDrainCase(t, func(t *testing.T, one policies.DrainCase) {
		t.Helper()
		asked := drainRequest(one)
		asked.Params = nil
		got, err := set.Admit(t.Context(), asked)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())

		NewWithT(t).Expect(whole(t, got)).To(Equal(whole(t, named(one.Write))))
	})
}

func forEachDrainCase(t *testing.T, check func(*testing.T, policies.DrainCase)) {
	t.Helper()
	cases, err := policies.DrainCases()
	must(t, err)
	NewWithT(t).Expect(cases).NotTo(BeEmpty())
	for _, one := range cases {
		t.Run(one.Name, func(t *testing.T) { check(t, one) })
	}
}

func drainRequest(one policies.DrainCase) eval.Request {
	return eval.Request{Old: named(one.Old), New: named(one.Write), Params: []client.Object{policies.Switch()}}
}

func named(side policies.DrainSide) *corev1.Pod {
	pod := side.Pod()
	pod.Namespace, pod.Name = metav1.NamespaceDefault, "web-0"

	return pod
}

func whole(t *testing.T, obj client.Object) string {
	t.Helper()
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	data, err := yaml.Marshal(obj)
	must(t, err)

	return string(data)
}
