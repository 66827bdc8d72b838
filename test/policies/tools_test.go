// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/test/policies"
)

// base creates the object that the cases of a kind begin with.
func base(t *testing.T, c client.Client, kind, name string) client.Object {
	t.Helper()
	cases, err := policies.Cases()
	must(t, err)
	obj := cases[kind][0].Old
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetName(name)
	must(t, policies.Create(t.Context(), c, obj))
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(c.Delete(context.WithoutCancel(t.Context()), obj)); err != nil {
			t.Errorf("delete: %v", err)
		}
	})

	return obj
}

// reference says which object is meant.
func reference(kind, name string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(appsv1.SchemeGroupVersion.String())
	obj.SetKind(kind)
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetName(name)

	return obj
}

// TestKubectl holds what users of kubectl see.
func TestKubectl(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			u := newUser(t)
			atRest := base(t, u.c, kind, "tools").DeepCopyObject().(client.Object)
			resource := strings.ToLower(kind) + "s.apps/tools"
			workload := reference(kind, "tools")

			u.kubectl(nil, "set", "image", resource, "main=nginx:2")
			u.expectHeld(workload, "after set image")
			if kind == "Deployment" {
				u.kubectl(nil, "rollout", "pause", resource)
				u.expectHeld(workload, "after a pause")
				g.Expect(u.get(workload).Object["spec"]).To(HaveKeyWithValue("paused", true), "the pause is the user's")
				u.kubectl(nil, "rollout", "resume", resource)
				g.Expect(u.get(workload).Object["spec"]).NotTo(HaveKey("paused"))
			}
			u.kubectl(nil, "rollout", "restart", resource)
			u.expectHeld(workload, "after another change")
			u.kubectl(nil, "label", resource, "insitu.dev/held-")
			u.expectHeld(workload, "after the label was taken away")

			u.kubectl(nil, "label", resource, "--overwrite", "insitu.dev/held=release")
			g.Expect(u.get(workload).GetLabels()).To(Equal(atRest.GetLabels()))
			want := reference(kind, "tools")
			g.Expect(u.c.Scheme().Convert(atRest, want, nil)).To(Succeed())
			g.Expect(strategyOf(u.get(workload))).To(Equal(strategyOf(want)))
		})
	}
}

func strategyOf(obj *unstructured.Unstructured) any {
	spec, _ := obj.Object["spec"].(map[string]any)

	return []any{spec["updateStrategy"], spec["strategy"], spec["minReadySeconds"], spec["progressDeadlineSeconds"], spec["paused"]}
}

// TestSubresources are those of controllers and autoscalers.
func TestSubresources(t *testing.T) {
	g := NewWithT(t)
	u := newUser(t)
	deployment := base(t, u.c, "Deployment", "subresources").(*appsv1.Deployment)
	workload := reference("Deployment", "subresources")
	u.kubectl(nil, "set", "image", "deployment/subresources", "main=nginx:2")
	g.Expect(u.c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())

	deployment.Annotations = map[string]string{"deployment.kubernetes.io/revision": "2"}
	deployment.Status.Replicas = 3
	deployment.Status.ObservedGeneration = deployment.Generation
	g.Expect(u.c.Status().Update(t.Context(), deployment)).To(Succeed())
	u.expectHeld(workload, "after a status")
	g.Expect(u.get(workload).GetAnnotations()).To(HaveKeyWithValue("deployment.kubernetes.io/revision", "2"))

	u.kubectl(nil, "scale", "deployment/subresources", "--replicas=7")
	u.expectHeld(workload, "after a scaling")
	g.Expect(u.c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
	g.Expect(*deployment.Spec.Replicas).To(BeEquivalentTo(7))
	g.Expect(deployment.Status.Replicas).To(BeEquivalentTo(3))
}

// TestPartitionOfAnotherClient has the manifest of one say nothing of what another
// one has set.
func TestPartitionOfAnotherClient(t *testing.T) {
	g := NewWithT(t)
	u := newUser(t)
	l := life{user: u, kind: "StatefulSet", spec: specs["StatefulSet"]["a type"]}
	manifest := func(image string) *unstructured.Unstructured {
		obj := l.manifest("partitioned", image)
		obj.SetLabels(map[string]string{native.UpdatePolicyLabel: "InPlaceIfPossible"})

		return obj
	}
	l.write = (*user).applyServerSide
	workload := manifest("nginx:1")
	l.begin(workload)
	u.patch(workload, "another-client", `spec: {updateStrategy: {rollingUpdate: {partition: 2}}}`)

	u.applyServerSide(manifest("nginx:2"))
	u.applyServerSide(manifest("nginx:2"))
	u.expectHeld(workload, "after two applies")
	g.Expect(u.get(workload).GetAnnotations()).To(HaveKeyWithValue(native.HeldPartitionAnnotation, "2"))
	u.patch(workload, "insitu", `metadata: {labels: {insitu.dev/held: release}}`)

	var set appsv1.StatefulSet
	g.Expect(u.c.Get(t.Context(), client.ObjectKeyFromObject(workload), &set)).To(Succeed())
	g.Expect(set.Spec.UpdateStrategy).To(Equal(appsv1.StatefulSetUpdateStrategy{
		Type: appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
			Partition: ptr.To[int32](2), MaxUnavailable: ptr.To(intstr.FromInt32(1)),
		},
	}))
}

// TestLargeTemplate has as much in it as the API server stores: comparing it must
// not cost more than expressions may.
func TestLargeTemplate(t *testing.T) {
	const variables, size = 1200, 1000
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			c := newClient(t)
			obj := base(t, c, kind, "large")
			container := &templateOf(t, obj).Spec.Containers[0]
			for i := range variables {
				container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("V%d", i), Value: strings.Repeat("x", size)})
			}
			g.Expect(c.Update(t.Context(), obj)).To(Succeed())
			g.Expect(obj.GetLabels()).To(HaveKeyWithValue(native.HeldLabel, native.Held))

			templateOf(t, obj).Spec.Containers[0].Env[variables-1].Value = "y"
			g.Expect(c.Update(t.Context(), obj)).To(Succeed())
			obj.GetLabels()[native.HeldLabel] = native.Release
			g.Expect(c.Update(t.Context(), obj)).To(Succeed())
			g.Expect(obj.GetLabels()).NotTo(HaveKey(native.HeldLabel))

			templateOf(t, obj).Spec.Containers[0].Env[variables-1].Value = "z"
			g.Expect(c.Update(t.Context(), obj)).To(Succeed())
			g.Expect(obj.GetLabels()).To(HaveKeyWithValue(native.HeldLabel, native.Held), "both templates are large")
		})
	}
}

func templateOf(t *testing.T, obj client.Object) *corev1.PodTemplateSpec {
	t.Helper()
	switch workload := obj.(type) {
	case *appsv1.Deployment:
		return &workload.Spec.Template
	case *appsv1.StatefulSet:
		return &workload.Spec.Template
	case *appsv1.DaemonSet:
		return &workload.Spec.Template
	}
	t.Fatalf("object of an unknown kind: %T", obj)

	return nil
}

// TestDeletion is not in the way of what ends.
func TestDeletion(t *testing.T) {
	for _, kind := range []string{"Deployment", "StatefulSet", "DaemonSet"} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			c := newClient(t)
			obj := base(t, c, kind, "deleted")
			obj.SetFinalizers([]string{"example.io/wait"})
			g.Expect(c.Update(t.Context(), obj)).To(Succeed())
			g.Expect(c.Delete(t.Context(), obj)).To(Succeed())
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())

			obj.SetFinalizers(nil)
			templateOf(t, obj).Spec.Containers[0].Image = "nginx:2"
			g.Expect(c.Update(t.Context(), obj)).To(Succeed())
			g.Expect(obj.GetLabels()).NotTo(HaveKey(native.HeldLabel))
		})
	}
}
