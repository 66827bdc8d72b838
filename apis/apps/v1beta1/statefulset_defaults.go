// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// Defaults of absent fields.
const (
	DefaultReplicas             int32 = 1
	DefaultRevisionHistoryLimit int32 = 10
	DefaultMaxUnavailable       int32 = 1
)

// The methods below read a spec with its defaults applied. They are pure and
// accept any object, also one that the schema would refuse: a value that cannot
// be understood counts as the most careful one.

// GetReplicas returns the number of pods wanted.
func (s *StatefulSet) GetReplicas() int32 {
	return max(ptr.Deref(s.Spec.Replicas, DefaultReplicas), 0)
}

// GetRevisionHistoryLimit returns the number of unused revisions to keep.
func (s *StatefulSet) GetRevisionHistoryLimit() int32 {
	return max(ptr.Deref(s.Spec.RevisionHistoryLimit, DefaultRevisionHistoryLimit), 0)
}

// GetPodManagementPolicy returns the order of creation and deletion.
func (s *StatefulSet) GetPodManagementPolicy() appsv1.PodManagementPolicyType {
	if s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement {
		return appsv1.ParallelPodManagement
	}

	return appsv1.OrderedReadyPodManagement
}

// GetUpdateStrategyType returns how a new revision reaches the pods.
func (s *StatefulSet) GetUpdateStrategyType() appsv1.StatefulSetUpdateStrategyType {
	switch s.Spec.UpdateStrategy.Type {
	case "", appsv1.RollingUpdateStatefulSetStrategyType:
		return appsv1.RollingUpdateStatefulSetStrategyType
	default:
		return appsv1.OnDeleteStatefulSetStrategyType
	}
}

// GetPodUpdatePolicy returns how one pod gets a new revision.
func (s *StatefulSet) GetPodUpdatePolicy() PodUpdateStrategyType {
	switch policy := s.rollingUpdate().PodUpdatePolicy; policy {
	case InPlaceIfPossiblePodUpdateStrategyType, InPlaceOnlyPodUpdateStrategyType:
		return policy
	default:
		return RecreatePodUpdateStrategyType
	}
}

// GetPartition returns how many pods stay at the old revision: those with the
// lowest ordinals or, with unorderedUpdate, the last in its order.
func (s *StatefulSet) GetPartition() int32 {
	return max(ptr.Deref(s.rollingUpdate().Partition, 0), 0)
}

// GetMaxUnavailable returns how many pods may be unavailable during an update.
// A percentage of replicas is rounded down; the result is at least 1. With
// podManagementPolicy OrderedReady it is always 1.
func (s *StatefulSet) GetMaxUnavailable() int32 {
	if s.GetPodManagementPolicy() != appsv1.ParallelPodManagement {
		return DefaultMaxUnavailable
	}

	return s.scaledToReplicas(s.rollingUpdate().MaxUnavailable)
}

// GetScaleMaxUnavailable returns how many pods may be unavailable while pods
// are created or deleted, and false if that is not limited. It is limited with
// podManagementPolicy Parallel only, because OrderedReady goes one by one.
func (s *StatefulSet) GetScaleMaxUnavailable() (int32, bool) {
	strategy := s.Spec.ScaleStrategy
	if strategy == nil || strategy.MaxUnavailable == nil || s.GetPodManagementPolicy() != appsv1.ParallelPodManagement {
		return 0, false
	}

	return s.scaledToReplicas(strategy.MaxUnavailable), true
}

// GetUnorderedUpdate returns the order that replaces the one by ordinal, and nil
// if there is none.
func (s *StatefulSet) GetUnorderedUpdate() *UnorderedUpdateStrategy {
	return s.rollingUpdate().UnorderedUpdate
}

// GetInPlaceUpdateStrategy returns the details of in-place updates.
func (s *StatefulSet) GetInPlaceUpdateStrategy() InPlaceUpdateStrategy {
	return ptr.Deref(s.rollingUpdate().InPlaceUpdateStrategy, InPlaceUpdateStrategy{})
}

// RespectsDisruptionBudgets reports whether updates wait for the
// PodDisruptionBudgets of the pods.
func (s *StatefulSet) RespectsDisruptionBudgets() bool {
	return s.GetInPlaceUpdateStrategy().PodDisruptionBudget == RespectPodDisruptionBudget
}

// GetLifecycle returns spec.lifecycle; nil if it defines no hook.
func (s *StatefulSet) GetLifecycle() *Lifecycle {
	return s.Spec.Lifecycle.OrNil()
}

// IsPaused reports whether updates are paused.
func (s *StatefulSet) IsPaused() bool {
	return s.rollingUpdate().Paused
}

// GetMinReadySeconds returns for how many seconds, from 0 to
// MaxMinReadySeconds, a pod must have been ready to count as available.
func (s *StatefulSet) GetMinReadySeconds() int32 {
	return min(max(ptr.Deref(s.rollingUpdate().MinReadySeconds, 0), 0), MaxMinReadySeconds)
}

// GetGracePeriod returns how long a pod stays out of service before its
// containers are changed in place.
func (s *StatefulSet) GetGracePeriod() time.Duration {
	return time.Duration(max(s.GetInPlaceUpdateStrategy().GracePeriodSeconds, 0)) * time.Second
}

// GetVolumeClaimUpdateStrategyType returns what happens to existing claims when
// their template changes.
func (s *StatefulSet) GetVolumeClaimUpdateStrategyType() VolumeClaimUpdateStrategyType {
	return s.Spec.VolumeClaimUpdateStrategy.GetType()
}

// GetPersistentVolumeClaimRetentionPolicy returns what happens to claims when
// the set is deleted or scaled down. Both fields are set.
func (s *StatefulSet) GetPersistentVolumeClaimRetentionPolicy() StatefulSetPersistentVolumeClaimRetentionPolicy {
	policy := ptr.Deref(s.Spec.PersistentVolumeClaimRetentionPolicy, StatefulSetPersistentVolumeClaimRetentionPolicy{})

	return StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: retainUnlessDelete(policy.WhenDeleted),
		WhenScaled:  retainUnlessDelete(policy.WhenScaled),
	}
}

// rollingUpdate returns the parameters of the rolling update, empty if there
// are none.
func (s *StatefulSet) rollingUpdate() RollingUpdateStatefulSetStrategy {
	return ptr.Deref(s.Spec.UpdateStrategy.RollingUpdate, RollingUpdateStatefulSetStrategy{})
}

// scaledToReplicas returns a number or a percentage of replicas as a number of
// pods, rounded down and at least 1. An absent or malformed value counts as 1.
func (s *StatefulSet) scaledToReplicas(value *intstr.IntOrString) int32 {
	number, err := intstr.GetScaledValueFromIntOrPercent(
		intstr.ValueOrDefault(value, intstr.FromInt32(DefaultMaxUnavailable)), int(s.GetReplicas()), false)
	if err != nil || number < 1 {
		return 1
	}

	return int32(min(number, math.MaxInt32))
}

func retainUnlessDelete(t PersistentVolumeClaimRetentionPolicyType) PersistentVolumeClaimRetentionPolicyType {
	if t == DeletePersistentVolumeClaimRetentionPolicyType {
		return t
	}

	return RetainPersistentVolumeClaimRetentionPolicyType
}
