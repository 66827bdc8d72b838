// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
)

// TestPullerIsAccepted: a pod that pulls images may be made in a namespace with the strictest Pod
// Security, with
// quotas and ranges for what a pod asks for.
func TestPullerIsAccepted(t *testing.T) {
	g := NewWithT(t)
	c, err := client.New(server, client.Options{Scheme: clientgoscheme.Scheme})
	must(t, err)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "pullers-", Labels: map[string]string{
		"pod-security.kubernetes.io/enforce": "restricted", "pod-security.kubernetes.io/enforce-version": "latest",
	}}}
	must(t, c.Create(t.Context(), namespace))
	owner := builders.StatefulSet(namespace.Name, "sample", "nginx:a").Build()
	owner.UID = "8b1f0a43-4f1c-4c8e-9a80-4fd1a2ef1c70"
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "sample-0"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "default", ImagePullSecrets: []corev1.LocalObjectReference{{Name: "registry"}},
			Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}},
		},
	}
	hard := corev1.ResourceList{
		corev1.ResourceRequestsCPU: resource.MustParse("1"), corev1.ResourceLimitsCPU: resource.MustParse("1"),
		corev1.ResourceRequestsMemory: resource.MustParse("1Gi"), corev1.ResourceLimitsMemory: resource.MustParse("1Gi"),
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "all"}, Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}
	must(t, c.Create(t.Context(), quota))
	// No controller counts it here.
	quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}}
	for name := range hard {
		quota.Status.Used[name] = resource.MustParse("0")
	}
	must(t, c.Status().Update(t.Context(), quota))
	must(t, c.Create(t.Context(), &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "all"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("500m")},
		}}},
	}))
	pull := inplace.Pull{Node: "node-1", Images: []inplace.Image{
		{Name: "nginx:b", PullPolicy: corev1.PullIfNotPresent}, {Name: "log:b", PullPolicy: corev1.PullAlways},
	}}
	puller := pull.Puller(owner, *metav1.NewControllerRef(owner, appsv1beta1.GroupVersion.WithKind("StatefulSet")), pod)
	sent := puller.DeepCopy()
	must(t, c.Create(t.Context(), puller, client.DryRunAll))
	g.Expect(puller.Spec.Volumes).To(BeEmpty(), "it has no token")
	g.Expect(puller.Spec.ImagePullSecrets).To(Equal(pod.Spec.ImagePullSecrets))
	for i, container := range puller.Spec.Containers {
		g.Expect(container.Command).To(Equal(sent.Spec.Containers[i].Command))
		g.Expect(container.ImagePullPolicy).To(Equal(pull.Images[i].PullPolicy))
	}
}
