// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies"
)

// TestHoldStatus follows what clients learn of a rollout by the generation that the controller
// says it has seen: not the present one as long as the hold lasts, whatever is written, and
// all of it afterwards.
func TestHoldStatus(t *testing.T) {
	cases, err := policies.Cases()
	must(t, err)
	for _, kind := range []string{"StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			g, c := NewWithT(t), newClient(t)
			obj := cases[kind][0].Old.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
			obj.SetNamespace(metav1.NamespaceDefault)
			obj.SetName("seen")
			must(t, policies.Create(t.Context(), c, obj))
			t.Cleanup(func() { must(t, c.Delete(context.WithoutCancel(t.Context()), obj)) })
			observe := func() {
				t.Helper()
				must(t, policies.GivePods(t.Context(), c, obj))
			}
			write := func(patch string) {
				t.Helper()
				must(t, c.Patch(t.Context(), obj, client.RawPatch("application/merge-patch+json", []byte(patch))))
			}
			observe()
			g.Expect(observedBy(obj)).To(Equal(obj.GetGeneration()), "it is not held")

			write(`{"spec": {"template": {"spec": {"priorityClassName": "high"}}}}`)
			g.Expect(obj.GetLabels()).To(HaveKey(native.HeldLabel))
			g.Expect(observedBy(obj)).To(BeNumerically("<", obj.GetGeneration()))
			for range 2 {
				observe()
				g.Expect(observedBy(obj)).To(Equal(obj.GetGeneration() - 1))
				g.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(native.HeldObservedGenerationAnnotation, "2"))
			}
			version := obj.GetResourceVersion()
			observe()
			g.Expect(obj.GetResourceVersion()).To(Equal(version), "a status that says the same is no write, and wakes no controller")

			write(`{"spec": {"minReadySeconds": 3}}`)
			g.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(native.HeldObservedGenerationAnnotation, "2"))
			observe()
			g.Expect(observedBy(obj)).To(Equal(obj.GetGeneration() - 1))
			g.Expect(obj.GetAnnotations()).To(HaveKeyWithValue(native.HeldObservedGenerationAnnotation, "3"))

			write(`{"metadata": {"labels": {"insitu.dev/held": "release"}}}`)
			g.Expect(obj.GetAnnotations()).NotTo(HaveKey(native.HeldObservedGenerationAnnotation))
			g.Expect(observedBy(obj)).To(BeNumerically("<", obj.GetGeneration()))
			observe()
			g.Expect(observedBy(obj)).To(Equal(obj.GetGeneration()))
		})
	}
}

func observedBy(obj client.Object) int64 {
	switch typed := obj.(type) {
	case *appsv1.StatefulSet:
		return typed.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		return typed.Status.ObservedGeneration
	default:
		return 0
	}
}
