// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import corev1 "k8s.io/api/core/v1"

// Opening returns the step by which a pod that no controller updates may serve, whatever it
// was in the middle of: its gates are opened, and our drain ends. It returns nil if there
// is nothing to open or to end, and for a pod that does not come back.
func Opening(pod *corev1.Pod) *Step {
	if pod.DeletionTimestamp != nil || HasEnded(pod) || !needsMarkReady(pod) {
		return nil
	}
	return &Step{Action: MarkReady, State: Verifying, Message: "no controller updates the pod"}
}
