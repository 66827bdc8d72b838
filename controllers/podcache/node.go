// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TrimNode keeps of a node what says which pods it runs, and whether they can be changed there: its
// name, labels and taints, and of each condition the type and the status. The list of images alone
// takes several thousand bytes.
func TrimNode(in any) (any, error) {
	node, ok := in.(*corev1.Node)
	if !ok {
		return in, nil
	}
	node.ObjectMeta = metav1.ObjectMeta{
		Name: node.Name, UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: node.Labels, DeletionTimestamp: node.DeletionTimestamp,
	}
	node.Spec = corev1.NodeSpec{Taints: node.Spec.Taints}
	conditions := make([]corev1.NodeCondition, len(node.Status.Conditions))
	for i, condition := range node.Status.Conditions {
		conditions[i] = corev1.NodeCondition{Type: condition.Type, Status: condition.Status}
	}
	node.Status = corev1.NodeStatus{Conditions: conditions}

	return node, nil
}

// targetNode returns of an affinity what a pod of a DaemonSet asks for that has no node yet: the
// one that it was made for. It returns nil for any other pod.
func targetNode(pod *corev1.PodSpec) *corev1.Affinity {
	if pod.NodeName != "" || pod.Affinity == nil || pod.Affinity.NodeAffinity == nil || pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	for _, term := range pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(term.MatchFields) > 0 {
			return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: term.MatchFields}},
			}}}
		}
	}

	return nil
}
