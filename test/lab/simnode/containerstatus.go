// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubecontainer "k8s.io/kubernetes/pkg/kubelet/container"
	runtimeutil "k8s.io/kubernetes/pkg/kubelet/kuberuntime/util"
)

// containerStatuses returns the statuses of init containers in the order of the
// spec, and of main containers by name, as the kubelet does.
func (r *Runtime) containerStatuses(pod *corev1.Pod, specs []corev1.Container, now time.Time) []corev1.ContainerStatus {
	if len(specs) == 0 {
		return nil
	}
	statuses := make([]corev1.ContainerStatus, 0, len(specs))
	for i := range specs {
		statuses = append(statuses, r.containerStatus(pod, &specs[i], now))
	}
	if !isInit(pod, specs[0].Name) {
		slices.SortFunc(statuses, func(a, b corev1.ContainerStatus) int { return strings.Compare(a.Name, b.Name) })
	}
	return statuses
}

func (r *Runtime) containerStatus(pod *corev1.Pod, spec *corev1.Container, now time.Time) corev1.ContainerStatus {
	c := r.containers[spec.Name]
	result := corev1.ContainerStatus{
		Name:         spec.Name,
		Image:        spec.Image,
		State:        notYet(pod),
		Started:      new(bool),
		VolumeMounts: volumeMounts(spec),
	}
	if c != nil {
		*result.Started = c.started(now)
		result.Image, result.ImageID, result.ContainerID = c.image.Name, c.image.ID, c.id
		result.RestartCount = c.restartCount
		result.Ready = c.ready(now) && (!isInit(pod, spec.Name) || isSidecar(spec))
		result.Resources = spec.Resources.DeepCopy()
		result.AllocatedResources = spec.Resources.Requests.DeepCopy()
		result.State, result.LastTerminationState = c.states()
	}
	if c.running() {
		result.Resources = c.resources.DeepCopy()
		return result
	}
	if c != nil && isInit(pod, spec.Name) && !isSidecar(spec) && c.ended.ExitCode == 0 {
		result.Ready = true
		return result
	}
	if waiting, failed := r.failures.get(spec.Name); failed && r.wouldStart(pod, spec) {
		if result.State.Terminated != nil {
			result.LastTerminationState = result.State
		}
		result.State = corev1.ContainerState{Waiting: &waiting}
	}
	return result
}

// states returns what the container is, and how the one before it ended.
func (c *container) states() (state, last corev1.ContainerState) {
	last.Terminated = c.last.DeepCopy()
	if c.running() {
		state.Running = &corev1.ContainerStateRunning{StartedAt: seconds(c.startedAt)}
		return state, last
	}
	state.Terminated = c.ended.DeepCopy()
	return state, last
}

// wouldStart tells whether the kubelet means to start a container that is not
// running, so that it is shown as waiting.
func (r *Runtime) wouldStart(pod *corev1.Pod, spec *corev1.Container) bool {
	return pod.DeletionTimestamp == nil && mustRestart(pod, spec, r.containers[spec.Name])
}

// notYet is the state of a container that was never started.
func notYet(pod *corev1.Pod) corev1.ContainerState {
	reason := "ContainerCreating"
	if len(pod.Spec.InitContainers) > 0 {
		reason = "PodInitializing"
	}
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason}}
}

func volumeMounts(spec *corev1.Container) []corev1.VolumeMountStatus {
	var statuses []corev1.VolumeMountStatus
	for _, mount := range spec.VolumeMounts {
		status := corev1.VolumeMountStatus{Name: mount.Name, MountPath: mount.MountPath, ReadOnly: mount.ReadOnly}
		if mount.ReadOnly {
			mode := corev1.RecursiveReadOnlyDisabled
			status.RecursiveReadOnly = &mode
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// sandboxStatus describes the sandbox to the kubelet's own code.
func (r *Runtime) sandboxStatus(pod *corev1.Pod) *kubecontainer.PodStatus {
	if !r.sandbox {
		return &kubecontainer.PodStatus{}
	}
	state := runtimeapi.PodSandboxState_SANDBOX_READY
	if r.finished {
		state = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
	return &kubecontainer.PodStatus{SandboxStatuses: []*runtimeapi.PodSandboxStatus{{
		Metadata: &runtimeapi.PodSandboxMetadata{},
		State:    state,
		Network:  &runtimeapi.PodSandboxNetworkStatus{Ip: r.podIP},
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{
			Options: &runtimeapi.NamespaceOption{Network: runtimeutil.NetworkNamespaceForPod(pod)},
		}},
	}}}
}
