// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StatefulSetStatus is the observed state of a StatefulSet.
type StatefulSetStatus struct {
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

	// currentReplicas is the number of pods at currentRevision.
	//
	// +required
	CurrentReplicas int32 `json:"currentReplicas"`

	// updatedReplicas is the number of pods at updateRevision.
	//
	// +required
	UpdatedReplicas int32 `json:"updatedReplicas"`

	// updatedReadyReplicas is the number of ready pods at updateRevision.
	//
	// +optional
	UpdatedReadyReplicas int32 `json:"updatedReadyReplicas,omitempty"`

	// updatedAvailableReplicas is the number of available pods at
	// updateRevision.
	//
	// +optional
	UpdatedAvailableReplicas int32 `json:"updatedAvailableReplicas,omitempty"`

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
	// updated run, and at which those are made that the partition keeps. It
	// becomes updateRevision when there are pods, all of them are updated and
	// ready, and no partition keeps others back.
	//
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the name of the ControllerRevision of the present
	// template.
	//
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// collisionCount is part of the hash that names revisions. It is raised
	// when a name is taken by other content.
	//
	// +optional
	CollisionCount *int32 `json:"collisionCount,omitempty"`

	// conditions are the latest observations, one per type: Ready, Progressing,
	// Stalled, FailedCreatePod, FailedUpdatePod.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// labelSelector is spec.selector as a string, for the scale subresource.
	//
	// +optional
	LabelSelector string `json:"labelSelector,omitempty"`

	// volumeClaims counts the claims that match their template, one entry per
	// volumeClaimTemplate.
	//
	// +optional
	// +listType=map
	// +listMapKey=volumeClaimName
	VolumeClaims []VolumeClaimStatus `json:"volumeClaims,omitempty"`

	// blockers name what the update waits for, the worst first, at most 10.
	// Empty when nothing waits.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Blockers []Blocker `json:"blockers,omitempty"`
}

// ResizeStatus counts the pods whose resources are to change, each once.
type ResizeStatus struct {
	// inProgress is the number of pods whose node applies the new size.
	//
	// +optional
	InProgress int32 `json:"inProgress,omitempty"`

	// deferred is the number of pods that wait for room on their node.
	//
	// +optional
	Deferred int32 `json:"deferred,omitempty"`

	// kept is the number of pods that stay at their old size, because the new
	// one was refused or failed.
	//
	// +optional
	Kept int32 `json:"kept,omitempty"`
}

// Blocker says why one pod does not move on.
type Blocker struct {
	// pod is the name of the pod that waits.
	//
	// +required
	Pod string `json:"pod"`

	// step is what the pod waits to do, for example Drain or Verify.
	//
	// +optional
	Step string `json:"step,omitempty"`

	// reason is the cause in one CamelCase word, for example ImagePullBackOff.
	//
	// +required
	Reason string `json:"reason"`

	// message says in a sentence what is waited for, and what to do if it does
	// not end by itself.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// since is the time from which the pod has been waiting for this reason.
	//
	// +optional
	Since metav1.Time `json:"since,omitzero"`
}
