// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// RevisionOf returns which revision a pod says it is at, see [Revision.Name].
func RevisionOf(pod *corev1.Pod) string {
	return pod.Labels[appsv1beta1.ControllerRevisionHashLabel]
}

func isReady(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && podutils.IsPodReady(pod)
}

func isAvailable(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	return isReady(pod) && (minReadySeconds == 0 || now.After(servingSince(pod).Add(time.Duration(minReadySeconds)*time.Second)))
}

// servingSince returns since when a ready pod has served with the containers
// that it runs: a container can be replaced so quickly that the condition does
// not move.
func servingSince(pod *corev1.Pod) time.Time {
	since := readySince(pod)
	for _, container := range liveContainers(pod) {
		if running := container.status.State.Running; running != nil {
			since = latest(since, running.StartedAt.Time)
		}
	}
	return since
}

func readySince(pod *corev1.Pod) time.Time {
	return condition(pod, corev1.PodReady).LastTransitionTime.Time
}

// HasEnded reports whether a pod will never run again and is still there: it was
// evicted, for example.
func HasEnded(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
}

// IsBroken reports whether a pod is not ready and cannot become so by waiting:
// it has failed, cannot be scheduled, or a container cannot be started or keeps
// ending.
func IsBroken(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || podutils.IsPodReady(pod) {
		return false
	}
	if pod.Status.Phase == corev1.PodFailed || condition(pod, corev1.PodScheduled).Reason == corev1.PodReasonUnschedulable {
		return true
	}
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, cannotStart) ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, cannotStart) ||
		slices.ContainsFunc(liveContainers(pod), liveContainer.hasEnded)
}

// cannotStart reports whether a container waits for more than its turn. One that has
// ended is about to be started again: the kubelet calls it waiting as soon as that
// fails, or has to wait.
func cannotStart(status corev1.ContainerStatus) bool {
	if status.State.Waiting == nil {
		return false
	}
	switch status.State.Waiting.Reason {
	case "", "ContainerCreating", "PodInitializing":
		return false
	default:
		return true
	}
}
