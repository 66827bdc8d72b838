// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// lostAfter is how long after the end of its grace period a pod may still be
// there. A kubelet that answers needs seconds for it; a minute leaves it time to
// unmount volumes, and a dead node does not hold up other pods for long.
const lostAfter = time.Minute

// IsLost reports whether the deletion of a pod is overdue: its node may be gone,
// and it is not known whether its containers still run.
//
// A lost pod is unavailable, and nothing that can be waited for.
func IsLost(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && !now.Before(LostAt(pod))
}

// LostAt returns when a pod that is being deleted becomes lost.
func LostAt(pod *corev1.Pod) time.Time {
	return pod.DeletionTimestamp.Add(lostAfter)
}

// terminatingSince returns when the deletion of a pod was asked for. The
// deletion timestamp is when its grace period ends.
func terminatingSince(pod *corev1.Pod) time.Time {
	return pod.DeletionTimestamp.Add(-time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second)
}

// Terminate returns the step of a pod that is being deleted: to wait until it is gone. A
// lost pod is stuck.
func Terminate(pod *corev1.Pod, now time.Time) Step {
	step := Step{
		State: Recreating, Reason: ReasonTerminating, Message: "the pod is being deleted",
		Since: terminatingSince(pod), Until: LostAt(pod),
	}
	if IsLost(pod, now) {
		step.State, step.Reason, step.Until = Stuck, ReasonTerminationOverdue, time.Time{}
		step.Message = fmt.Sprintf("terminating since %s%s: %s", step.Since.UTC().Format(time.RFC3339), onNode(pod.Spec.NodeName), help(pod))
	}
	return step
}

// help says what to do about a lost pod.
func help(pod *corev1.Pod) string {
	// The kubelet lowers the grace period to 0 when all containers have ended.
	if len(pod.Finalizers) > 0 && ptr.Deref(pod.DeletionGracePeriodSeconds, 1) == 0 {
		return "it ended, and waits for its finalizers: " + strings.Join(pod.Finalizers, ", ")
	}
	return fmt.Sprintf("force-delete it when the node is known to be gone: kubectl delete pod %s -n %s --force --grace-period=0",
		pod.Name, pod.Namespace)
}

// onNode says where a pod is: " on node worker-1"; nothing if it has no node.
func onNode(node string) string {
	if node == "" {
		return ""
	}
	return " on node " + node
}

// kubeletOn names the kubelet that has to act: "the kubelet on node worker-1".
func kubeletOn(node string) string {
	return "the kubelet" + onNode(node)
}
