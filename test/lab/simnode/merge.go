// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

// mergeStatus returns what the kubelet writes over the status that the API
// server has: everything is the kubelet's but the conditions of others and what
// other components report.
func mergeStatus(live, next corev1.PodStatus) corev1.PodStatus {
	merged := *next.DeepCopy()
	merged.Conditions = nil
	for _, condition := range live.Conditions {
		if !kubetypes.PodConditionByKubelet(condition.Type) {
			merged.Conditions = append(merged.Conditions, condition)
		}
	}
	for _, condition := range next.Conditions {
		if kubetypes.PodConditionByKubelet(condition.Type) {
			merged.Conditions = append(merged.Conditions, condition)
		}
	}
	merged.ObservedGeneration = max(merged.ObservedGeneration, live.ObservedGeneration)
	merged.NominatedNodeName = live.NominatedNodeName
	merged.EphemeralContainerStatuses = live.EphemeralContainerStatuses
	merged.ResourceClaimStatuses = live.ResourceClaimStatuses
	merged.ExtendedResourceClaimStatus = live.ExtendedResourceClaimStatus
	merged.NodeAllocatableResourceClaimStatuses = live.NodeAllocatableResourceClaimStatuses
	if isTerminal(merged.Phase) {
		setNotReady(&merged)
	}
	return merged
}

// setNotReady makes sure that a pod that has ended is not called ready.
func setNotReady(status *corev1.PodStatus) {
	reason := "PodCompleted"
	if status.Phase == corev1.PodFailed {
		reason = "PodFailed"
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		_, condition := podutil.GetPodConditionFromList(status.Conditions, kind)
		if condition != nil && condition.Status == corev1.ConditionTrue {
			condition.Status, condition.Reason, condition.Message = corev1.ConditionFalse, reason, ""
		}
	}
}

// statusPatch returns the patch that gives a pod the next status, nil if it has
// it already. The patch holds the UID, so that it never hits another pod of
// the same name.
func statusPatch(pod *corev1.Pod, next corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: pod.Status})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	after, err := json.Marshal(corev1.Pod{Status: next})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	same, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil || string(same) == "{}" {
		return nil, err
	}
	after, err = json.Marshal(corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: pod.UID}, Status: next})
	if err != nil {
		return nil, fmt.Errorf("encode status: %w", err)
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
}
