// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// steps are what the minimal client does to a pod, one after the other.
type steps []step

// step is a condition and what is written when it holds, if there is one. The
// last step of all only waits.
type step struct {
	when   func(pod *corev1.Pod, state *minimalPod) bool
	writes []write
}

// write is a patch of a pod or of a subresource.
type write struct {
	body func(pod *corev1.Pod) string
	to   []string
}

// minimalPod is how far a pod has come. One worker handles it at a time.
type minimalPod struct {
	steps int
	// container was the ID of the container when the last step was made,
	// generation is what the last write has made of the pod.
	container  string
	generation int64
}

// newImage takes a pod out of service, gives it an image and puts it back.
func newImage(image string) steps {
	return steps{
		{writes: []write{readiness(corev1.ConditionFalse)}},
		{
			when:   func(pod *corev1.Pod, _ *minimalPod) bool { return !podutils.IsPodReady(pod) },
			writes: []write{{body: func(pod *corev1.Pod) string { return inContainer(pod, "image", image) }}},
		},
		{when: restarted, writes: []write{readiness(corev1.ConditionTrue)}},
		{when: func(pod *corev1.Pod, _ *minimalPod) bool { return podutils.IsPodReady(pod) }},
	}
}

func restarted(pod *corev1.Pod, state *minimalPod) bool {
	container := pod.Status.ContainerStatuses[0]
	return container.ContainerID != state.container && container.State.Running != nil
}

// newSize gives a pod a CPU request and labels it, and waits until the node has
// followed.
func newSize(cpu resource.Quantity) steps {
	return steps{
		{writes: []write{
			{to: []string{"resize"}, body: func(pod *corev1.Pod) string {
				return inContainer(pod, "resources", map[string]any{"requests": map[string]string{"cpu": cpu.String()}})
			}},
			{body: func(*corev1.Pod) string {
				return encoded(map[string]any{"metadata": map[string]any{"labels": map[string]string{"cpu": cpu.String()}}})
			}},
		}},
		{when: func(pod *corev1.Pod, state *minimalPod) bool { return resized(pod, state.generation, cpu) }},
	}
}

func resized(pod *corev1.Pod, generation int64, cpu resource.Quantity) bool {
	container := pod.Status.ContainerStatuses[0]
	underWay := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress
	})
	return pod.Status.ObservedGeneration >= generation && !underWay &&
		container.Resources != nil && container.Resources.Requests.Cpu().Equal(cpu)
}

// inContainer is a patch of one field of a pod's container.
func inContainer(pod *corev1.Pod, field string, value any) string {
	return encoded(map[string]any{"spec": map[string]any{"containers": []any{
		map[string]any{"name": pod.Spec.Containers[0].Name, field: value},
	}}})
}

func readiness(status corev1.ConditionStatus) write {
	return write{to: []string{"status"}, body: func(*corev1.Pod) string {
		return encoded(map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": appsv1beta1.InPlaceUpdateReady, "status": status, "lastTransitionTime": metav1.Now()},
		}}})
	}}
}

func encoded(patch any) string {
	raw, err := json.Marshal(patch)
	if err != nil {
		panic(err) // strings and times always marshal
	}
	return string(raw)
}
