// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// liveContainer is a container that the kubelet keeps running for as long as the
// pod lives, and starts again when its image changes: one of spec.containers, or
// a native sidecar, which is an init container with restartPolicy Always. Other
// init containers have ended before these started, and do not run again.
//
// Init containers and containers share one space of names, so a name is enough
// to find a container.
type liveContainer struct {
	name, image string
	// sidecar: the container is in spec.initContainers.
	sidecar bool
	// pullPolicy is as the API server defaulted it.
	pullPolicy corev1.PullPolicy
	// priority is the container's place in the launch order, the highest first; nil if
	// no container of the pod has one.
	priority *int
	// status is noStatus if the kubelet has not reported one. It must not be changed.
	status *corev1.ContainerStatus
}

// isAboutToStart reports whether the container ran, and the kubelet is to start it again, for which
// it has the image.
func (c liveContainer) isAboutToStart() bool {
	return c.status.State.Running == nil && lastContainerID(c.status) != "" && !LacksImage(*c.status)
}

var noStatus = &corev1.ContainerStatus{}

// liveContainers returns the containers of a pod, then its sidecars.
func liveContainers(pod *corev1.Pod) []liveContainer {
	all := make([]liveContainer, 0, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		all = append(all, liveContainer{
			name: c.Name, image: c.Image, pullPolicy: c.ImagePullPolicy, priority: launchPriority(pod, i),
			status: statusOf(c.Name, pod.Status.ContainerStatuses),
		})
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			continue
		}
		all = append(all, liveContainer{
			name: c.Name, image: c.Image, sidecar: true, pullPolicy: c.ImagePullPolicy, priority: priorityIn(c.Env),
			status: statusOf(c.Name, pod.Status.InitContainerStatuses),
		})
	}
	return withPriorities(all)
}

// withPriorities gives containers without a place in the launch order the place 0, if another one
// of their pod has a place.
func withPriorities(containers []liveContainer) []liveContainer {
	if !slices.ContainsFunc(containers, func(c liveContainer) bool { return c.priority != nil }) {
		return containers
	}
	for i := range containers {
		containers[i].priority = cmp.Or(containers[i].priority, new(int))
	}
	return containers
}

func statusOf(container string, statuses []corev1.ContainerStatus) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == container {
			return &statuses[i]
		}
	}
	return noStatus
}

// hasEnded reports whether the container is a sidecar that has ended and is not
// started again yet. The kubelet says no more of one that ended with exit code
// 0: it shows neither ImagePullBackOff nor CrashLoopBackOff in its status.
func (c liveContainer) hasEnded() bool {
	return c.sidecar && c.status.State.Terminated != nil
}

// isStarting reports whether the container is a sidecar that runs and whose
// startup probe has not succeeded. The kubelet does not stop such a one for a
// change of its image.
func (c liveContainer) isStarting() bool {
	return c.sidecar && c.status.State.Running != nil && !ptr.Deref(c.status.Started, true)
}
