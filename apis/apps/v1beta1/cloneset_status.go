// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CloneSetStatus is the observed state of a CloneSet.
type CloneSetStatus struct {
	// observedGeneration is the metadata.generation that this status reflects;
	// -1 until the operator has seen the object.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// replicas is the number of pods that exist and are not being deleted.
	//
	// +required
	Replicas int32 `json:"replicas"`

	// readyReplicas is the number of pods whose Ready condition is True.
	//
	// +required
	ReadyReplicas int32 `json:"readyReplicas"`

	// availableReplicas is the number of pods that have been ready for at least
	// minReadySeconds.
	//
	// +required
	AvailableReplicas int32 `json:"availableReplicas"`

	// updatedReplicas is the number of pods at updateRevision.
	//
	// +required
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of ready pods at updateRevision.
	//
	// +required
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas"`

	// updatedAvailableReplicas is the number of available pods at
	// updateRevision.
	//
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas,omitempty"`

	// expectedUpdatedReplicas is the number of pods that partition allows
	// to be updated: replicas without those it keeps at the old revision.
	//
	// +optional
	ExpectedUpdatedReplicas int32 `json:"expectedUpdatedReplicas,omitempty"`

	// inPlaceUpdated is the number of pods that reached updateRevision in
	// place.
	//
	// +optional
	InPlaceUpdated int32 `json:"inPlaceUpdated,omitempty"`

	// recreated is the number of pods that reached updateRevision by being
	// created at it.
	//
	// +optional
	Recreated int32 `json:"recreated,omitempty"`

	// resize counts pods whose resources are to change. Absent when there are
	// none.
	//
	// +optional
	Resize *ResizeStatus `json:"resize,omitempty"`

	// currentRevision is the name of the ControllerRevision that pods not yet
	// updated run, and those that the partition keeps. It becomes updateRevision
	// when there are pods, all updated and ready, and no partition.
	//
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the name of the ControllerRevision of the present
	// template.
	//
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// volumeClaims counts the claims that match their template, one entry per
	// volumeClaimTemplate.
	//
	// +optional
	// +listType=map
	// +listMapKey=volumeClaimName
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`

	// collisionCount is part of the hash that names revisions. It is raised
	// when a name is taken by other content.
	//
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions are the latest observations, one per type: Ready, Progressing,
	// Stalled, FailedScale, FailedUpdate.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []CloneSetCondition `json:"conditions,omitempty"`

	// labelSelector is spec.selector as a string, for the scale subresource.
	//
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// blockers name what the update waits for, the worst first, at most 10.
	// Empty when nothing waits.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Blockers []Blocker `json:"blockers,omitempty"`
}

// CloneSetCondition is one observation about a CloneSet.
type CloneSetCondition struct {
	// type is what is observed.
	//
	// +required
	Type string `json:"type"`

	// status is True, False or Unknown.
	//
	// +required
	Status metav1.ConditionStatus `json:"status"`

	// observedGeneration is the metadata.generation that was observed. Absent,
	// it is not known.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// lastUpdateTime is the time at which status, reason or message last
	// changed.
	//
	// +optional
	LastUpdateTime metav1.Time `json:"lastUpdateTime,omitzero"`

	// lastTransitionTime is the time at which status last changed.
	//
	// +optional
	LastTransitionTime metav1.Time `json:"lastTransitionTime,omitzero"`

	// reason is the cause in one CamelCase word. Absent, there is none to name.
	//
	// +optional
	Reason string `json:"reason,omitempty"`

	// message says the same in a sentence. Absent, the reason says it all.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
