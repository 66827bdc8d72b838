// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// stepReplicaSets is one sync of the controller of ReplicaSets, for each.
func (n *nativeWorkload) stepReplicaSets() {
	d := n.object()
	if d == nil {
		return
	}
	for _, rs := range replicaSetsIn(n.shown(), d) {
		if n.late.waits(rs) {
			continue
		}
		pods, expects := n.podsOf(rs), n.late.expects(rs)
		for range int(*rs.Spec.Replicas) - len(pods) {
			if expects {
				break
			}
			n.createPod(rs, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &rs.Spec.Template, fmt.Sprintf("%s-%05d", rs.Name, n.nextID()), nil)
		}
		if tooMany := len(pods) - int(*rs.Spec.Replicas); tooMany > 0 && !expects {
			slices.SortStableFunc(pods, n.compareForDeletion)
			for _, pod := range pods[:tooMany] {
				n.deletePod(rs, pod, "ReplicaSet "+rs.Name+" is to have fewer")
			}
		}
		pods = n.podsOf(rs)
		status := appsv1.ReplicaSetStatus{Replicas: int32(len(pods)), ObservedGeneration: rs.Generation} //nolint:gosec // small
		for _, pod := range pods {
			if conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
				status.ReadyReplicas++
			}
			if n.isAvailable(pod) {
				status.AvailableReplicas++
			}
		}
		mutateStatus(n.world.server, rs.Name, func(rs *appsv1.ReplicaSet) { rs.Status = status })
	}
}

// compareForDeletion orders pods by how well a ReplicaSet can do without them.
func (n *nativeWorkload) compareForDeletion(a, b *corev1.Pod) int {
	rank := func(is bool) int { return map[bool]int{true: 1}[is] }
	return cmp.Or(
		cmp.Compare(rank(a.Spec.NodeName != ""), rank(b.Spec.NodeName != "")),
		cmp.Compare(rank(conditionIs(a, corev1.PodReady, corev1.ConditionTrue)), rank(conditionIs(b, corev1.PodReady, corev1.ConditionTrue))),
		b.CreationTimestamp.Compare(a.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}
