// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// keepsReady reports whether the user wants the pod to stay in service during
// the change: every container that it restarts is one of KeepReady. What an
// earlier change is still restarting does not count: the pod is out of service
// for that one, and stays so until it is complete.
func (t Target) keepsReady(change Change) bool {
	return change.Restarts() && !slices.ContainsFunc(change.RestartedContainers(), func(container string) bool {
		return !slices.Contains(t.KeepReady, container)
	})
}

// WhyNotDrained says why a pod is in service while a change restarts its
// containers; empty if it is not.
func (t Target) WhyNotDrained(pod *corev1.Pod, change Change) string {
	switch {
	case !change.Restarts() || IsMarkedNotReady(pod) && !isReadyDespiteLabel(pod, t):
		return ""
	case t.keepsReady(change):
		return "keepReady names " + strings.Join(change.RestartedContainers(), ", ")
	case t.canDrain(pod), !isReady(pod):
		return "" // it is drained, or out of service by itself
	default:
		return t.CannotDrain.Message
	}
}
