// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// DefaultBurstReplicas is how many pods of a DaemonSet are created, and how many are deleted, at
// a time.
const DefaultBurstReplicas = 250

// ProgressiveCreatePodAnnotation is spec.scaleStrategy.partitionedScaling in the words of
// v1alpha1: "true" or absent. The field counts where it is there.
const ProgressiveCreatePodAnnotation = "daemonset.kruise.io/progressive-create-pod"

// IsOnDelete reports whether a pod gets the new revision when a user deletes it, and the operator
// updates none.
func (s *DaemonSet) IsOnDelete() bool {
	return s.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
}

// GetRollingUpdate returns the parameters of the update; those of a rolling update that says
// nothing if there are none.
func (s *DaemonSet) GetRollingUpdate() RollingUpdateDaemonSetStrategy {
	return ptr.Deref(s.Spec.UpdateStrategy.RollingUpdate, RollingUpdateDaemonSetStrategy{})
}

// GetPodUpdatePolicy returns how a pod gets the new revision.
func (s *DaemonSet) GetPodUpdatePolicy() PodUpdateStrategyType {
	switch s.GetRollingUpdate().RollingUpdateType {
	case InPlaceIfPossibleDaemonSetRollingUpdateType:
		return InPlaceIfPossiblePodUpdateStrategyType
	case InPlaceOnlyDaemonSetRollingUpdateType:
		return InPlaceOnlyPodUpdateStrategyType
	default:
		return RecreatePodUpdateStrategyType
	}
}

// IsPaused reports whether updates are paused.
func (s *DaemonSet) IsPaused() bool {
	return ptr.Deref(s.GetRollingUpdate().Paused, false)
}

// GetMaxSurge returns how many of so many nodes may run a new pod beside the old one.
func (s *DaemonSet) GetMaxSurge(nodes int) int {
	rolling := s.GetRollingUpdate()
	if s.GetPodUpdatePolicy() != RecreatePodUpdateStrategyType {
		return 0
	}
	byDefault := 0
	if rolling.RollingUpdateType == SurgingDaemonSetRollingUpdateType {
		byDefault = 1
	}

	return scaledTo(nodes, rolling.MaxSurge, byDefault, roundUp)
}

// GetMaxUnavailable returns of how many of so many nodes the pod may be unavailable. It is at
// least 1 where there is no surge: else no pod could be updated.
func (s *DaemonSet) GetMaxUnavailable(nodes int) int {
	if s.GetMaxSurge(nodes) > 0 {
		return 0
	}

	return max(scaledTo(nodes, s.GetRollingUpdate().MaxUnavailable, 1, roundUp), 1)
}

// GetPartition returns of how many of so many nodes the pods stay at the old revision.
func (s *DaemonSet) GetPartition(nodes int) int {
	return min(scaledTo(nodes, s.GetRollingUpdate().Partition, 0, roundDown), nodes)
}

// GetBurst returns how many pods are created, and how many are deleted, at a time, where so many
// nodes are to run one; at least 1.
func (s *DaemonSet) GetBurst(nodes int) int {
	return max(scaledTo(nodes, s.Spec.BurstReplicas, DefaultBurstReplicas, roundDown), 1)
}

// HasPartitionedScaling reports whether the partition limits on how many new nodes pods are made.
func (s *DaemonSet) HasPartitionedScaling() bool {
	if s.Spec.ScaleStrategy != nil {
		return s.Spec.ScaleStrategy.PartitionedScaling
	}

	return s.Annotations[ProgressiveCreatePodAnnotation] == "true"
}

// GetRevisionHistoryLimit returns how many unused revisions are kept.
func (s *DaemonSet) GetRevisionHistoryLimit() int32 {
	return max(ptr.Deref(s.Spec.RevisionHistoryLimit, DefaultRevisionHistoryLimit), 0)
}

// GetInPlaceUpdateStrategy returns the details of in-place updates.
func (s *DaemonSet) GetInPlaceUpdateStrategy() InPlaceUpdateStrategy {
	return ptr.Deref(s.GetRollingUpdate().InPlaceUpdateStrategy, InPlaceUpdateStrategy{})
}

// scaledTo returns a number or a percentage of nodes as a number of them. One that is absent is
// the default, and one that is malformed counts as 0.
func scaledTo(nodes int, value *intstr.IntOrString, byDefault int, rounding rounding) int {
	if value == nil {
		return byDefault
	}
	number, err := intstr.GetScaledValueFromIntOrPercent(value, nodes, bool(rounding))
	if err != nil {
		return 0
	}

	return min(max(number, 0), math.MaxInt32)
}
