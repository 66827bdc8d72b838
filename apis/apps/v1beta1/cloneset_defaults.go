// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// DefaultCloneSetMaxUnavailable is maxUnavailable of a CloneSet that does not
// say it. partition and maxSurge are 0.
const DefaultCloneSetMaxUnavailable = "20%"

// The methods below read a spec with its defaults applied, whichever way it is
// written. Like those of a StatefulSet, they are pure and accept any object.

// GetReplicas returns the number of pods wanted.
func (s *CloneSet) GetReplicas() int32 {
	return max(ptr.Deref(s.Spec.Replicas, DefaultReplicas), 0)
}

// GetRevisionHistoryLimit returns the number of unused revisions to keep.
func (s *CloneSet) GetRevisionHistoryLimit() int32 {
	return max(ptr.Deref(s.Spec.RevisionHistoryLimit, DefaultRevisionHistoryLimit), 0)
}

// GetMinReadySeconds returns for how many seconds a pod must have been ready to
// count as available.
func (s *CloneSet) GetMinReadySeconds() int32 {
	return max(s.Spec.MinReadySeconds, 0)
}

// GetProgressDeadline returns how long an update may take before it is reported,
// and false if there is no limit.
func (s *CloneSet) GetProgressDeadline() (time.Duration, bool) {
	seconds := ptr.Deref(s.Spec.ProgressDeadlineSeconds, math.MaxInt32)
	if seconds == math.MaxInt32 {
		return 0, false
	}

	return time.Duration(max(seconds, 0)) * time.Second, true
}

// GetUpdateStrategyType returns who updates the pods: RollingUpdate or OnDelete.
func (s *CloneSet) GetUpdateStrategyType() CloneSetUpdateStrategyType {
	switch t := s.Spec.UpdateStrategy.Type; {
	case t == "", t == RollingUpdateCloneSetUpdateStrategyType, t.isFlat():
		return RollingUpdateCloneSetUpdateStrategyType
	default:
		return OnDeleteCloneSetUpdateStrategyType
	}
}

// GetRollingUpdate returns the parameters of the update as if they were written
// nested, each from where it is written. Absent fields stay absent, but for
// podUpdatePolicy.
func (s *CloneSet) GetRollingUpdate() RollingUpdateCloneSetStrategy {
	strategy := s.Spec.UpdateStrategy
	nested := ptr.Deref(strategy.RollingUpdate, RollingUpdateCloneSetStrategy{})
	beside, inside := &strategy.CloneSetUpdateParameters, &nested.CloneSetUpdateParameters

	if strategy.Type.isFlat() {
		return RollingUpdateCloneSetStrategy{
			PodUpdatePolicy: PodUpdateStrategyType(strategy.Type), CloneSetUpdateParameters: beside.or(inside),
		}
	}

	return RollingUpdateCloneSetStrategy{
		PodUpdatePolicy: recreateUnlessInPlace(nested.PodUpdatePolicy), CloneSetUpdateParameters: inside.or(beside),
	}
}

// GetPodUpdatePolicy returns how one pod gets a new revision.
func (s *CloneSet) GetPodUpdatePolicy() PodUpdateStrategyType {
	return s.GetRollingUpdate().PodUpdatePolicy
}

// GetPartition returns how many of the replicas stay at the old revision. A
// percentage is rounded up, but below 100% it allows at least one to be
// updated. All stay if the value is malformed.
func (s *CloneSet) GetPartition() int32 {
	replicas := int(s.GetReplicas())
	value := ptr.Deref(s.GetRollingUpdate().Partition, intstr.FromInt32(0))

	partition, err := intstr.GetScaledValueFromIntOrPercent(&value, replicas, bool(roundUp))
	roundedToAll := value.Type == intstr.String && value.StrVal != "100%" && partition == replicas

	switch {
	case err != nil:
		partition = replicas
	case roundedToAll:
		partition--
	}

	return int32(max(min(partition, replicas), 0))
}

// HasPartition reports whether the partition keeps pods of a set that is large enough, also
// where GetPartition is 0 for the present replicas.
func (s *CloneSet) HasPartition() bool {
	value := ptr.Deref(s.GetRollingUpdate().Partition, intstr.FromInt32(0))
	partition, err := intstr.GetScaledValueFromIntOrPercent(&value, 100, bool(roundUp))

	return err != nil || partition > 0
}

// GetMaxUnavailable returns how many pods may be unavailable during an update.
// A percentage of replicas is rounded up if there is no surge, else down. The
// result is at least 1 if there is no surge.
func (s *CloneSet) GetMaxUnavailable() int32 {
	value := ptr.Deref(s.GetRollingUpdate().MaxUnavailable, intstr.FromString(DefaultCloneSetMaxUnavailable))

	if s.GetMaxSurge() > 0 {
		return s.scaledToReplicas(value, roundDown)
	}

	return max(s.scaledToReplicas(value, roundUp), 1)
}

// GetMaxSurge returns how many pods may exist beyond replicas during an update
// that is not paused. A percentage of replicas is rounded up.
func (s *CloneSet) GetMaxSurge() int32 {
	return s.scaledToReplicas(ptr.Deref(s.GetRollingUpdate().MaxSurge, intstr.FromInt32(0)), roundUp)
}

// IsPaused reports whether updates are paused.
func (s *CloneSet) IsPaused() bool {
	return s.GetRollingUpdate().Paused
}

// GetPriorityStrategy returns the order of the update by labels, and nil if there
// is none.
func (s *CloneSet) GetPriorityStrategy() *UpdatePriorityStrategy {
	return s.GetRollingUpdate().PriorityStrategy
}

// GetScatterStrategy returns which pods are spread over the update.
func (s *CloneSet) GetScatterStrategy() []CloneSetUpdateScatterTerm {
	return s.GetRollingUpdate().ScatterStrategy
}

// GetInPlaceUpdateStrategy returns the details of in-place updates.
func (s *CloneSet) GetInPlaceUpdateStrategy() InPlaceUpdateStrategy {
	return ptr.Deref(s.GetRollingUpdate().InPlaceUpdateStrategy, InPlaceUpdateStrategy{})
}

// GetGracePeriod returns how long a pod stays out of service before its
// containers are changed in place.
func (s *CloneSet) GetGracePeriod() time.Duration {
	return time.Duration(max(s.GetInPlaceUpdateStrategy().GracePeriodSeconds, 0)) * time.Second
}

// GetScaleMaxUnavailable returns how many pods may be unavailable while pods are
// created, and false if that is not limited. A percentage of replicas is rounded
// up; the result is at least 1.
func (s *CloneSet) GetScaleMaxUnavailable() (int32, bool) {
	value := s.Spec.ScaleStrategy.MaxUnavailable
	if value == nil {
		return 0, false
	}

	return max(s.scaledToReplicas(*value, roundUp), 1), true
}

// ReusesClaims reports whether the claims of a deleted pod are kept for the next
// one. They are, unless the spec says otherwise: no other field has a say in it.
func (s *CloneSet) ReusesClaims() bool {
	strategy := s.Spec.ScaleStrategy

	switch {
	case strategy.EnablePVCReuse != nil:
		return *strategy.EnablePVCReuse
	case strategy.DisablePVCReuse != nil:
		return !*strategy.DisablePVCReuse
	default:
		return true
	}
}

// ExcludesPreparingDelete reports whether pods that a preDelete hook holds do not
// count as replicas.
func (s *CloneSet) ExcludesPreparingDelete() bool {
	return s.Spec.ScaleStrategy.ExcludePreparingDelete || s.Labels[CloneSetScalingExcludePreparingDeleteKey] == "true"
}

// scaledToReplicas returns a number or a percentage of replicas as a number of
// pods. A malformed value counts as 0.
func (s *CloneSet) scaledToReplicas(value intstr.IntOrString, rounding rounding) int32 {
	number, err := intstr.GetScaledValueFromIntOrPercent(&value, int(s.GetReplicas()), bool(rounding))
	if err != nil {
		return 0
	}

	return int32(min(max(number, 0), math.MaxInt32))
}

// rounding is what becomes of a part of a pod.
type rounding bool

const (
	roundDown rounding = false
	roundUp   rounding = true
)

// isFlat reports whether only v1alpha1 has the type.
func (t CloneSetUpdateStrategyType) isFlat() bool {
	switch t {
	case RecreateCloneSetUpdateStrategyType, InPlaceIfPossibleCloneSetUpdateStrategyType, InPlaceOnlyCloneSetUpdateStrategyType:
		return true
	default:
		return false
	}
}

// or returns the parameters, and what they leave out or leave at its default from
// others.
func (p *CloneSetUpdateParameters) or(others *CloneSetUpdateParameters) CloneSetUpdateParameters {
	scatter := p.ScatterStrategy
	if len(scatter) == 0 {
		scatter = others.ScatterStrategy
	}

	return CloneSetUpdateParameters{
		Partition:             unlessDefault(p.Partition, others.Partition, intstr.FromInt32(0)),
		MaxUnavailable:        unlessDefault(p.MaxUnavailable, others.MaxUnavailable, intstr.FromString(DefaultCloneSetMaxUnavailable)),
		MaxSurge:              unlessDefault(p.MaxSurge, others.MaxSurge, intstr.FromInt32(0)),
		Paused:                p.Paused || others.Paused,
		PriorityStrategy:      cmp.Or(p.PriorityStrategy, others.PriorityStrategy),
		ScatterStrategy:       scatter,
		InPlaceUpdateStrategy: cmp.Or(p.InPlaceUpdateStrategy, others.InPlaceUpdateStrategy),
	}
}

// unlessDefault returns a value, or the other one where it says no more than the default,
// which the API server fills in.
func unlessDefault(value, other *intstr.IntOrString, byDefault intstr.IntOrString) *intstr.IntOrString {
	if value == nil || *value == byDefault && other != nil {
		return other
	}

	return value
}

// recreateUnlessInPlace returns a policy, and ReCreate for an absent or unknown
// one.
func recreateUnlessInPlace(policy PodUpdateStrategyType) PodUpdateStrategyType {
	switch policy {
	case InPlaceIfPossiblePodUpdateStrategyType, InPlaceOnlyPodUpdateStrategyType:
		return policy
	default:
		return RecreatePodUpdateStrategyType
	}
}
