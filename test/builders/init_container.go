// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Sidecar adds a native sidecar whose container shows a status.
func (b *PodBuilder) Sidecar(image string, status corev1.ContainerStatus) *PodBuilder {
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, corev1.Container{
		Name: status.Name, Image: image, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
	})
	b.pod.Status.InitContainerStatuses = append(b.pod.Status.InitContainerStatuses, status)
	return b
}

// RanOnce adds an init container that has ended as it should, before Start.
func (b *PodBuilder) RanOnce(name, image string) *PodBuilder {
	b.pod.Spec.InitContainers = append(b.pod.Spec.InitContainers, corev1.Container{Name: name, Image: image})
	b.pod.Status.InitContainerStatuses = append(b.pod.Status.InitContainerStatuses, corev1.ContainerStatus{
		Name: name, Image: image, ImageID: ImageID(image), ContainerID: "containerd://" + name + "-1", Ready: true,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			Reason: "Completed", ContainerID: "containerd://" + name + "-1", StartedAt: metav1.NewTime(Start), FinishedAt: metav1.NewTime(Start),
		}},
	})
	return b
}
