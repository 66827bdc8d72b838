// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"k8s.io/utils/ptr"
)

// violations returns what the Pod Security Standard restricted has against a pod, in the
// words of the API server's own check; empty if nothing.
func violations(t *testing.T, meta *metav1.ObjectMeta, spec *corev1.PodSpec) string {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(level, meta, spec))

	return result.ForbiddenDetail()
}

// TestPodsAreRestricted evaluates every pod and pod template of the chart and of kustomize.
func TestPodsAreRestricted(t *testing.T) {
	rendered := map[string]objects{
		"kustomize default":    kustomized(t, "config/default"),
		"kustomize namespaced": kustomized(t, "config/namespaced"),
		"with policies":        render(t, withoutCRDs, withPolicies),
		"rich with policies":   render(t, rich, withPolicies, "--set=holdPolicies.install=true"),
	}
	// The manager, what helm test runs, and what an uninstall runs.
	pods := map[string]int{"kustomize default": 1, "kustomize namespaced": 1, "with policies": 3, "rich with policies": 3,
		"default": 2, "rich": 2, "namespaced": 3, "cluster-parts": 0}
	for name, flags := range modes {
		rendered[name] = render(t, flags...)
	}
	for name, all := range rendered {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found := podsIn(t, all)

			g.Expect(found).To(HaveLen(pods[name]))
			for owner, pod := range found {
				g.Expect(violations(t, &pod.ObjectMeta, &pod.Spec)).To(BeEmpty(), owner)
			}
		})
	}
}

func TestViolations(t *testing.T) {
	g := NewWithT(t)
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}}

	g.Expect(violations(t, &metav1.ObjectMeta{}, spec)).To(And(ContainSubstring("privileged"), ContainSubstring("seccompProfile")))
}

// podsIn returns the pods among objects, and those of their templates, by their owners.
func podsIn(t *testing.T, all objects) map[string]corev1.PodTemplateSpec {
	t.Helper()
	pods := map[string]corev1.PodTemplateSpec{}
	for _, obj := range all {
		content, found, err := unstructured.NestedMap(obj.Object, "spec", "template")
		if err != nil {
			t.Fatal(err)
		}
		if obj.GetKind() == "Pod" {
			content, found = map[string]any{"metadata": obj.Object["metadata"], "spec": obj.Object["spec"]}, true
		}
		if !found {
			continue
		}
		var template corev1.PodTemplateSpec
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &template); err != nil {
			t.Fatal(err)
		}
		pods[obj.GetKind()+"/"+obj.GetName()] = template
	}

	return pods
}
