// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
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
	// priority is the container's place in the order of changes, the highest
	// first; nil if it has none.
	priority *int
	// readsFields: its environment is read from fields of the pod.
	readsFields bool
	// status is the zero status if the kubelet has not reported one.
	status corev1.ContainerStatus
}

// liveContainers returns the containers of a pod, then its sidecars.
func liveContainers(pod *corev1.Pod) []liveContainer {
	all := make([]liveContainer, 0, len(pod.Spec.Containers)+len(pod.Spec.InitContainers))
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		all = append(all, liveContainer{
			name: c.Name, image: c.Image, pullPolicy: c.ImagePullPolicy, priority: launchPriority(pod, i), readsFields: readsFields(c.Env),
			status: statusOf(c.Name, pod.Status.ContainerStatuses),
		})
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways {
			continue
		}
		all = append(all, liveContainer{
			name: c.Name, image: c.Image, sidecar: true, pullPolicy: c.ImagePullPolicy, priority: priorityIn(c.Env), readsFields: readsFields(c.Env),
			status: statusOf(c.Name, pod.Status.InitContainerStatuses),
		})
	}
	return all
}

func readsFields(env []corev1.EnvVar) bool {
	return slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.ValueFrom != nil && v.ValueFrom.FieldRef != nil })
}

// findContainer returns the live container with a name; the zero container if
// the pod has none.
func findContainer(pod *corev1.Pod, name string) liveContainer {
	all := liveContainers(pod)
	if i := slices.IndexFunc(all, func(c liveContainer) bool { return c.name == name }); i >= 0 {
		return all[i]
	}
	return liveContainer{}
}

// containerStatus returns the status of a live container; the zero status if the
// kubelet has not reported one.
func containerStatus(pod *corev1.Pod, container string) corev1.ContainerStatus {
	return findContainer(pod, container).status
}

func statusOf(container string, statuses []corev1.ContainerStatus) corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == container {
			return statuses[i]
		}
	}
	return corev1.ContainerStatus{}
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
