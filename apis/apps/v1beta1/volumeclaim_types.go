// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"cmp"
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

// VolumeClaimUpdateStrategy says what happens to existing claims when their
// template changes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.recreate) || self.type == 'Recreate'",fieldPath=".recreate",messageExpression="'volumeClaimUpdateStrategy.recreate is only accepted with type Recreate; found type ' + self.type"
type VolumeClaimUpdateStrategy struct {
	// type is the strategy.
	//
	//   - OnDelete: existing claims stay. A claim follows its template when
	//     a user deletes it and its pod is created again.
	//   - OnPodRollingUpdate: claims grow and get their VolumeAttributesClass
	//     during the rolling update, each before its pod. Volumes never shrink.
	//     What cannot be changed in a claim is reported, and holds up nothing
	//     else.
	//   - Recreate: as OnPodRollingUpdate, and a claim that cannot be changed is
	//     recreated from a snapshot of itself, while its pod is stopped. Its
	//     old volume is held.
	//
	// Defaults to OnDelete.
	//
	// +optional
	// +kubebuilder:default=OnDelete
	Type VolumeClaimUpdateStrategyType `json:"type,omitempty"`

	// maxConcurrent is of how many pods the claims may be changing at a time:
	// a number from 1, or a percentage of replicas, rounded down to at least 1.
	// Broken pods do not wait for it. Defaults to 25%.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",messageExpression="'volumeClaimUpdateStrategy.maxConcurrent must be a number from 1, or a percentage from \"1%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// recreate are the parameters of type Recreate.
	//
	// +optional
	Recreate *VolumeClaimRecreateStrategy `json:"recreate,omitempty"`
}

// DefaultMaxConcurrentClaims is the default of maxConcurrent.
const DefaultMaxConcurrentClaims = "25%"

// GetMaxConcurrent returns of how many of a number of pods the claims may be
// changing at a time. A percentage is rounded down; the result is at least 1.
func (s *VolumeClaimUpdateStrategy) GetMaxConcurrent(replicas int32) int32 {
	value := intstr.FromString(DefaultMaxConcurrentClaims)
	if s.MaxConcurrent != nil {
		value = *s.MaxConcurrent
	}

	number, err := intstr.GetScaledValueFromIntOrPercent(&value, int(replicas), false)
	if err != nil {
		return 1
	}

	return int32(min(max(number, 1), math.MaxInt32))
}

// GetType returns what happens to existing claims when their template changes.
func (s *VolumeClaimUpdateStrategy) GetType() VolumeClaimUpdateStrategyType {
	switch s.Type {
	case OnPodRollingUpdateVolumeClaimUpdateStrategyType, RecreateVolumeClaimUpdateStrategyType:
		return s.Type
	default:
		return OnPVCDeleteVolumeClaimUpdateStrategyType
	}
}

// FollowsTemplates reports whether existing claims follow their templates during
// the rolling update.
func (s *VolumeClaimUpdateStrategy) FollowsTemplates() bool {
	return s.GetType() != OnPVCDeleteVolumeClaimUpdateStrategyType
}

// VolumeClaimUpdateStrategyType says when existing claims follow a change of
// their template.
//
// +kubebuilder:validation:Enum=OnDelete;OnPodRollingUpdate;Recreate
type VolumeClaimUpdateStrategyType string

const (
	// OnPVCDeleteVolumeClaimUpdateStrategyType leaves existing claims alone
	// until a user deletes them.
	OnPVCDeleteVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnDelete"
	// OnPodRollingUpdateVolumeClaimUpdateStrategyType grows claims during the
	// rolling update.
	OnPodRollingUpdateVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "OnPodRollingUpdate"
	// RecreateVolumeClaimUpdateStrategyType recreates, from a snapshot of
	// itself, a claim that cannot be changed.
	RecreateVolumeClaimUpdateStrategyType VolumeClaimUpdateStrategyType = "Recreate"
)

// VolumeClaimRecreateStrategy are the parameters of recreating claims from
// their own snapshots.
type VolumeClaimRecreateStrategy struct {
	// volumeSnapshotClassName is the class of the snapshots. Absent, the
	// default class of the claim's driver.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	VolumeSnapshotClassName string `json:"volumeSnapshotClassName,omitempty"`

	// oldVolume says what becomes of the volume that was replaced, once its pod
	// has run on the new one for holdSeconds.
	//
	//   - Retain: it is kept for ever.
	//   - Delete: it is deleted, where the new one was made from a snapshot of it.
	//
	// Defaults to Retain.
	//
	// +optional
	OldVolume RecreateRetentionType `json:"oldVolume,omitempty"`

	// holdSeconds is how long, in seconds, the old volume is kept at least
	// under oldVolume Delete. Defaults to 86400, one day.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	HoldSeconds *int32 `json:"holdSeconds,omitempty"`

	// snapshot says what becomes of the snapshot once the new volume is
	// proved.
	//
	//   - Retain: it is kept for ever.
	//   - Delete: it is deleted together with the old volume.
	//
	// Defaults to Retain.
	//
	// +optional
	Snapshot RecreateRetentionType `json:"snapshot,omitempty"`

	// timeoutSeconds is how long, in seconds, the snapshot may take, and again
	// the volume that is made from it. Then the pod gets its old volume back,
	// and the claim is not recreated before its template or recreate change.
	// Defaults to 3600, one hour.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// trial says what is tried while the pod still runs.
	//
	//   - Restore: a first snapshot, and a claim from it that is deleted when it
	//     has its volume; only the snapshot where a quota has no room.
	//   - Snapshot: a first snapshot.
	//   - None: nothing, where volumes in use have no snapshots.
	//
	// Defaults to Restore.
	//
	// +optional
	Trial RecreateTrialType `json:"trial,omitempty"`

	// withoutSnapshot says what to do where no snapshot can be taken: another
	// volumeMode, another driver, no snapshot class.
	//
	//   - Refuse: the claim stays as it is and is reported.
	//   - Empty: the new claim starts empty. The data is only in the old volume.
	//
	// Defaults to Refuse.
	//
	// +optional
	WithoutSnapshot WithoutSnapshotPolicy `json:"withoutSnapshot,omitempty"`
}

// Defaults of the parameters of recreating claims, in seconds.
const (
	DefaultRecreateHoldSeconds    = 86400
	DefaultRecreateTimeoutSeconds = 3600
)

// GetRecreate returns the parameters of type Recreate with their defaults.
func (s *VolumeClaimUpdateStrategy) GetRecreate() VolumeClaimRecreateStrategy {
	recreate := VolumeClaimRecreateStrategy{}
	if s.Recreate != nil {
		recreate = *s.Recreate
	}
	recreate.OldVolume = cmp.Or(recreate.OldVolume, RetainRecreateRetention)
	recreate.Snapshot = cmp.Or(recreate.Snapshot, RetainRecreateRetention)
	recreate.Trial = cmp.Or(recreate.Trial, RestoreRecreateTrial)
	recreate.WithoutSnapshot = cmp.Or(recreate.WithoutSnapshot, RefuseWithoutSnapshot)
	if recreate.HoldSeconds == nil {
		recreate.HoldSeconds = ptr.To[int32](DefaultRecreateHoldSeconds)
	}
	if recreate.TimeoutSeconds == nil {
		recreate.TimeoutSeconds = ptr.To[int32](DefaultRecreateTimeoutSeconds)
	}
	return recreate
}

// Recreates reports whether claims that cannot be changed are recreated.
func (s *VolumeClaimUpdateStrategy) Recreates() bool {
	return s.GetType() == RecreateVolumeClaimUpdateStrategyType
}

// RecreateRetentionType says whether what a recreate leaves behind is kept.
//
// +kubebuilder:validation:Enum=Retain;Delete
type RecreateRetentionType string

const (
	// RetainRecreateRetention keeps it.
	RetainRecreateRetention RecreateRetentionType = "Retain"
	// DeleteRecreateRetention deletes it.
	DeleteRecreateRetention RecreateRetentionType = "Delete"
)

// RecreateTrialType says what is tried before a pod is stopped for its claim.
//
// +kubebuilder:validation:Enum=Restore;Snapshot;None
type RecreateTrialType string

const (
	// RestoreRecreateTrial takes a snapshot and restores it to a claim, which is
	// deleted.
	RestoreRecreateTrial RecreateTrialType = "Restore"
	// SnapshotRecreateTrial takes a snapshot.
	SnapshotRecreateTrial RecreateTrialType = "Snapshot"
	// NoRecreateTrial tries nothing.
	NoRecreateTrial RecreateTrialType = "None"
)

// WithoutSnapshotPolicy says what to do where no snapshot can be taken.
//
// +kubebuilder:validation:Enum=Refuse;Empty
type WithoutSnapshotPolicy string

const (
	// RefuseWithoutSnapshot leaves the claim as it is and reports it.
	RefuseWithoutSnapshot WithoutSnapshotPolicy = "Refuse"
	// EmptyWithoutSnapshot makes an empty claim and keeps the old volume.
	EmptyWithoutSnapshot WithoutSnapshotPolicy = "Empty"
)

// VolumeClaimStatus counts the claims of one template.
type VolumeClaimStatus struct {
	// volumeClaimName is the metadata.name of the template.
	//
	// +required
	VolumeClaimName string `json:"volumeClaimName"`

	// compatibleReplicas is the number of claims whose spec matches the
	// template, or asks for more.
	//
	// +required
	CompatibleReplicas int32 `json:"compatibleReplicas"`

	// compatibleReadyReplicas is the number of those whose capacity has reached
	// the template's request, and whose volume has the attributes of its
	// VolumeAttributesClass.
	//
	// +required
	CompatibleReadyReplicas int32 `json:"compatibleReadyReplicas"`

	// updatingReplicas is the number of claims that are being changed.
	//
	// +optional
	UpdatingReplicas int32 `json:"updatingReplicas,omitempty"`

	// blockedReplicas is the number of claims that do not follow the template
	// although they should. The blockers say why.
	//
	// +optional
	BlockedReplicas int32 `json:"blockedReplicas,omitempty"`

	// kept is the storage that recreated claims have left; absent if there is none.
	//
	// +optional
	Kept *VolumeClaimKeptStatus `json:"kept,omitempty"`
}

// VolumeClaimKeptStatus counts the volumes and snapshots that are kept of recreated claims.
// They cost money: kubectl insitu volumes lists them.
type VolumeClaimKeptStatus struct {
	// volumes is the number of PersistentVolumes that claims have had before.
	//
	// +optional
	Volumes int32 `json:"volumes,omitempty"`

	// capacity is the sum of their capacities.
	//
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`

	// snapshots is the number of VolumeSnapshots.
	//
	// +optional
	Snapshots int32 `json:"snapshots,omitempty"`

	// oldestTimestamp is since when the oldest of all is kept.
	//
	// +optional
	OldestTimestamp *metav1.Time `json:"oldestTimestamp,omitempty"`

	// overdue is how many should have been deleted when holdSeconds were over.
	//
	// +optional
	Overdue int32 `json:"overdue,omitempty"`
}

// SumKept returns what is kept of the claims of all templates; nil if nothing is.
func SumKept(claims []VolumeClaimStatus) *VolumeClaimKeptStatus {
	var sum *VolumeClaimKeptStatus
	for _, claim := range claims {
		kept := claim.Kept
		if kept == nil {
			continue
		}
		if sum == nil {
			sum = &VolumeClaimKeptStatus{Capacity: &resource.Quantity{}, OldestTimestamp: kept.OldestTimestamp}
		}
		sum.Volumes += kept.Volumes
		sum.Snapshots += kept.Snapshots
		sum.Overdue += kept.Overdue
		sum.Capacity.Add(ptr.Deref(kept.Capacity, resource.Quantity{}))
		if kept.OldestTimestamp.Before(sum.OldestTimestamp) {
			sum.OldestTimestamp = kept.OldestTimestamp
		}
	}
	return sum
}
