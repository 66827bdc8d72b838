// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
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

// whyNotDrained says why a pod is in service while a change restarts its
// containers; empty if it is not.
func (t Target) whyNotDrained(pod *corev1.Pod, change Change) string {
	switch {
	case !change.Restarts() || IsMarkedNotReady(pod):
		return ""
	case t.keepsReady(change) && t.canDrain(pod):
		return "keepReady names " + strings.Join(change.RestartedContainers(), ", ")
	default:
		return fmt.Sprintf("the pod has no readiness gate %s", appsv1beta1.InPlaceUpdateReady)
	}
}
