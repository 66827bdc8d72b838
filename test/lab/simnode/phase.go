// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
)

func isTerminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodFailed || phase == corev1.PodSucceeded
}

// tally counts containers by what they mean for the phase of their pod.
type tally struct {
	waiting, running, stopped, succeeded int
	// final are the stopped containers that will not be restarted.
	final int
}

// phase computes the phase of a pod from the statuses of its containers, by the
// rules of the kubelet. Ended says that none will be started any more, whatever
// the restart policy.
func (r *Runtime) phase(pod *corev1.Pod, next corev1.PodStatus, ended bool) corev1.PodPhase {
	pending, failed := r.initProgress(pod, next)
	if failed {
		return corev1.PodFailed
	}
	count := countContainers(pod, next)
	switch {
	case pending || count.waiting > 0:
		return corev1.PodPending
	case count.running > 0:
		return corev1.PodRunning
	case !ended && count.final < count.stopped:
		return corev1.PodRunning // they are being restarted
	case count.succeeded == count.stopped:
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// initProgress tells whether main containers still have to wait for an init
// container, and whether one has failed for good.
func (r *Runtime) initProgress(pod *corev1.Pod, next corev1.PodStatus) (pending, failed bool) {
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status, _ := podutil.GetContainerStatus(next.InitContainerStatuses, spec.Name)
		if isSidecar(spec) {
			notStarted := status.State.Running != nil && !*status.Started ||
				status.State.Waiting != nil && status.LastTerminationState.Terminated == nil
			pending = pending || notStarted && !r.anyMainContainer(pod)
			continue
		}
		end := status.State.Terminated
		if end == nil {
			end = status.LastTerminationState.Terminated
		}
		switch {
		case status.State.Running != nil || end == nil:
			pending = true
		case end.ExitCode != 0 && !podutil.ContainerShouldRestart(*spec, pod.Spec, end.ExitCode):
			failed = true
		}
	}
	return pending, failed
}

func countContainers(pod *corev1.Pod, next corev1.PodStatus) tally {
	var count tally
	for i := range pod.Spec.InitContainers {
		if spec := &pod.Spec.InitContainers[i]; isSidecar(spec) {
			status, _ := podutil.GetContainerStatus(next.InitContainerStatuses, spec.Name)
			switch {
			case status.State.Running != nil:
				count.running++
			case status.State.Waiting != nil && status.LastTerminationState.Terminated == nil:
				count.waiting++
			}
		}
	}
	for i := range pod.Spec.Containers {
		spec := &pod.Spec.Containers[i]
		status, _ := podutil.GetContainerStatus(next.ContainerStatuses, spec.Name)
		end := status.State.Terminated
		if end == nil {
			end = status.LastTerminationState.Terminated
		}
		switch {
		case status.State.Running != nil:
			count.running++
		case end == nil:
			count.waiting++
		default:
			count.stopped++
			if !podutil.ContainerShouldRestart(*spec, pod.Spec, end.ExitCode) {
				count.final++
			}
			if status.State.Terminated != nil && end.ExitCode == 0 {
				count.succeeded++
			}
		}
	}
	return count
}
