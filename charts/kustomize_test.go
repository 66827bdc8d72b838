// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package charts_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	configv1alpha1 "github.com/insitu-dev/insitu/apis/config/v1alpha1"
)

// kustomized returns the objects of a kustomization.
func kustomized(t *testing.T, folder string) objects {
	t.Helper()
	output, err := runTool(t, kustomize, "build", folder)
	if err != nil {
		t.Fatalf("build %s: %v\n%s", folder, err, output)
	}

	return decode(t, output)
}

// TestSameAsKustomize compares what the chart installs with what kubectl apply -k installs:
// every object, but for names, labels and annotations that Helm or kustomize add.
func TestSameAsKustomize(t *testing.T) {
	for name, test := range map[string]struct {
		folder string
		flags  []string
		count  int
	}{
		"default":        {folder: "config/default", flags: []string{withPolicies}, count: 49},
		"network policy": {folder: "charts/testdata/network-policy", flags: []string{withPolicies, "--set=networkPolicy.enabled=true"}, count: 50},
		"namespaced":     {folder: "config/namespaced", flags: []string{withPolicies, "--set=rbac.scope=Namespace,metrics.secure=false"}, count: 10},
		"cluster parts": {
			folder: "config/cluster-parts", count: 37,
			flags: []string{withPolicies, "--set=manager.enabled=false", `--set=holdPolicies.namespaceSelector.matchLabels.insitu\.dev/manager=tenant`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			helmed, other := comparables(t, render(t, test.flags...)), comparables(t, kustomized(t, test.folder))

			g.Expect(namesOf(helmed)).To(ConsistOf(namesOf(other)))
			g.Expect(helmed).To(HaveLen(test.count))
			for name, object := range helmed {
				// Definitions are not compared by gomega: it would print both, a megabyte.
				if !equality.Semantic.DeepEqual(object, other[name]) && object.(map[string]any)["kind"] != "CustomResourceDefinition" {
					g.Expect(object).To(Equal(other[name]), name)
				}
			}
		})
	}
}

func namesOf(all map[string]any) []string {
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}

	return names
}

// TestComparables: what matters is not taken away before two objects are compared.
func TestComparables(t *testing.T) {
	g := NewWithT(t)
	all := comparables(t, kustomized(t, "config/default"))

	g.Expect(all["ClusterRole/insitu-view"]).To(HaveKeyWithValue("metadata", HaveKeyWithValue("labels", HaveLen(3))), "the aggregation")
	g.Expect(all["Deployment/insitu-manager"]).To(HaveKeyWithValue("spec", HaveKeyWithValue("selector", HaveKeyWithValue("matchLabels", HaveLen(2)))))
	g.Expect(all["PodDisruptionBudget/insitu-manager"]).To(HaveKeyWithValue("spec", HaveKeyWithValue("maxUnavailable", BeEquivalentTo(1))))
}

// comparables returns objects by kind and name, without what has to differ: the namespace
// that kustomize brings, the labels and annotations of the tools, the image, hooks, the name
// of the configuration, of which the meaning is compared, and what an uninstall keeps.
func comparables(t *testing.T, all objects) map[string]any {
	t.Helper()
	found := map[string]any{}
	for _, obj := range all {
		if _, isHook := obj.GetAnnotations()["helm.sh/hook"]; isHook || obj.GetKind() == "Namespace" {
			continue
		}
		obj = obj.DeepCopy()
		trim(obj.Object, "app.kubernetes.io/instance", "insitu.dev/config-checksum")
		trimMetadata(obj)
		switch obj.GetKind() {
		case "ConfigMap":
			config := configurationOf(t, all, obj.GetName())
			if config.Scope == configv1alpha1.NamespaceScope && len(config.Namespaces) == 0 {
				config.Namespaces = []string{obj.GetNamespace()} // its default
			}
			if len(config.Namespaces) == 0 {
				config.Namespaces = nil
			}
			obj.SetName("insitu-manager")
			obj.Object["data"] = config
		case "Deployment":
			trimPods(t, obj)
		}
		found[obj.GetKind()+"/"+obj.GetName()] = obj.Object
	}

	return found
}

// trim removes keys everywhere in an object.
func trim(value any, keys ...string) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range keys {
			delete(v, key)
		}
		for _, below := range v {
			trim(below, keys...)
		}
	case []any:
		for _, below := range v {
			trim(below, keys...)
		}
	}
}

// trimMetadata removes the labels and annotations that a tool adds to objects.
func trimMetadata(obj *unstructured.Unstructured) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	for _, key := range []string{
		"app.kubernetes.io/name", "app.kubernetes.io/version", "app.kubernetes.io/managed-by", "app.kubernetes.io/part-of",
		"app.kubernetes.io/component", "helm.sh/chart",
	} {
		delete(labels, key)
	}
	delete(annotations, "helm.sh/resource-policy")
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
	if len(labels) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "labels")
	}
	if len(annotations) == 0 {
		unstructured.RemoveNestedField(obj.Object, "metadata", "annotations")
	}
}

// trimPods removes the image and the name of the configuration from pods.
func trimPods(t *testing.T, obj *unstructured.Unstructured) {
	t.Helper()
	g := NewWithT(t)
	spec, _, err := unstructured.NestedMap(obj.Object, "spec", "template", "spec")
	g.Expect(err).NotTo(HaveOccurred())
	container := spec["containers"].([]any)[0].(map[string]any)
	delete(container, "image")
	delete(container, "imagePullPolicy")
	delete(spec["volumes"].([]any)[0].(map[string]any)["configMap"].(map[string]any), "name")
	g.Expect(unstructured.SetNestedMap(obj.Object, spec, "spec", "template", "spec")).To(Succeed())
}
