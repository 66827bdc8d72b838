// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// sizes are the resources of the containers of a pod, by name, and those of the
// pod as a whole under "".
type sizes map[string]corev1.ResourceRequirements

// sizesOf returns what a pod is to have.
func sizesOf(spec *corev1.PodSpec) sizes {
	found := sizes{}
	if spec.Resources != nil {
		found[""] = *spec.Resources.DeepCopy()
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		found[c.Name] = *c.Resources.DeepCopy()
	}
	return found
}

// sizeKey is one number in the sizes of a pod.
type sizeKey struct {
	container string
	// list is "requests" or "limits".
	list     string
	resource corev1.ResourceName
}

// values returns all numbers.
func (s sizes) values() map[sizeKey]resource.Quantity {
	found := map[sizeKey]resource.Quantity{}
	for container, size := range s {
		for list, values := range map[string]corev1.ResourceList{"requests": size.Requests, "limits": size.Limits} {
			for name, value := range values {
				found[sizeKey{container, list, name}] = value
			}
		}
	}
	return found
}

// changes returns where others differ, or have what these do not have.
func (s sizes) changes(others sizes) []sizeKey {
	mine, theirs := s.values(), others.values()
	var keys []sizeKey
	for key, value := range theirs {
		if was, ok := mine[key]; !ok || was.Cmp(value) != 0 {
			keys = append(keys, key)
		}
	}
	for key := range mine {
		if _, ok := theirs[key]; !ok {
			keys = append(keys, key)
		}
	}
	return keys
}

func (s sizes) equal(others sizes) bool {
	return apiequality.Semantic.DeepEqual(s.values(), others.values())
}

func (s sizes) String() string {
	var words []string
	for key, value := range s.values() {
		words = append(words, fmt.Sprintf("%s of %s %s %s", key.resource, key.container, key.list, value.String()))
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// cpu returns what is requested in all, in thousandths of a CPU.
func (s sizes) cpu() int64 {
	if whole, ok := s[""].Requests[corev1.ResourceCPU]; ok {
		return whole.MilliValue()
	}
	sum := int64(0)
	for container, size := range s {
		if container != "" {
			sum += size.Requests.Cpu().MilliValue()
		}
	}
	return sum
}

// restartsFor reports whether a container restarts when a resource changes.
func restartsFor(pod *corev1.Pod, container string, changed corev1.ResourceName) bool {
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if c.Name == container {
			return slices.Contains(c.ResizePolicy, corev1.ContainerResizePolicy{ResourceName: changed, RestartPolicy: corev1.RestartContainer})
		}
	}
	return false
}
