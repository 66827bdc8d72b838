// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package resize

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// specOf reads the spec of a pod as a user writes it.
func specOf(t testing.TB, text string) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(text), spec)).To(Succeed())
	return spec
}

// podOf is a pod as the API server would have stored it.
func podOf(t testing.TB, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{Spec: *specOf(t, text)}
	pod.Name, pod.UID, pod.ResourceVersion, pod.Generation = "web-0", "uid-1", "7", 2
	pod.Spec.NodeName = "node-1"
	pod.Status.ObservedGeneration = 2
	return pod
}

// text returns amounts as lines, in order.
func text(amounts Amounts) []string {
	lines := []string{}
	for _, field := range union(amounts, nil) {
		size := amounts[field]
		lines = append(lines, field.String()+"="+size.String())
	}
	return lines
}

// Fields that many tests are about.
var (
	cpuRequest    = Field{Container: "main", Resource: corev1.ResourceCPU}
	cpuLimit      = Field{Container: "main", Limit: true, Resource: corev1.ResourceCPU}
	memoryRequest = Field{Container: "main", Resource: corev1.ResourceMemory}
	memoryLimit   = Field{Container: "main", Limit: true, Resource: corev1.ResourceMemory}
	sideRequest   = Field{Container: "side", Sidecar: true, Resource: corev1.ResourceCPU}
	podRequest    = Field{Resource: corev1.ResourceCPU}
	podLimit      = Field{Limit: true, Resource: corev1.ResourceMemory}
)

func size(text string) resource.Quantity {
	return resource.MustParse(text)
}

// moment is when the operator wrote, in all tests.
var moment = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// seen returns a pod with a status as a kubelet publishes it.
func seen(t testing.TB, pod *corev1.Pod, status string) *corev1.Pod {
	t.Helper()
	pod = pod.DeepCopy()
	NewWithT(t).Expect(yaml.UnmarshalStrict([]byte(status), &pod.Status)).To(Succeed())
	for i := range pod.Status.Conditions {
		pod.Status.Conditions[i].LastTransitionTime = metav1.NewTime(moment.Add(2 * time.Second))
	}
	return pod
}

// onlyMain is a spec with one container.
func onlyMain(resources string) string {
	return "containers: [{name: main, resources: " + resources + "}]"
}
