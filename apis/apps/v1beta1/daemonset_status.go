// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DaemonSetStatus is the observed state of a DaemonSet. It counts nodes; of two pods on one
// node, the older one counts.
type DaemonSetStatus struct {
	// observedGeneration is the metadata.generation that this status reflects;
	// -1 until the operator has seen the object.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// desiredNumberScheduled is the number of nodes that are to run a pod.
	//
	// +required
	DesiredNumberScheduled int32 `json:"desiredNumberScheduled"`

	// currentNumberScheduled is the number of those nodes that have a pod.
	//
	// +required
	CurrentNumberScheduled int32 `json:"currentNumberScheduled"`

	// numberMisscheduled is the number of other nodes that have a pod.
	//
	// +required
	NumberMisscheduled int32 `json:"numberMisscheduled"`

	// numberReady is the number of nodes that are to run a pod and have a ready
	// one.
	//
	// +required
	NumberReady int32 `json:"numberReady"`

	// updatedNumberScheduled is the number of nodes that are to run a pod and
	// have one at updateRevision.
	//
	// +required
	UpdatedNumberScheduled int32 `json:"updatedNumberScheduled"`

	// numberAvailable is the number of nodes that are to run a pod and have one
	// that has been ready for at least minReadySeconds.
	//
	// +optional
	NumberAvailable int32 `json:"numberAvailable,omitempty"`

	// numberUnavailable is the number of nodes that are to run a pod and have no
	// available one.
	//
	// +optional
	NumberUnavailable int32 `json:"numberUnavailable,omitempty"`

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

	// currentRevision is the hash of the revision that pods run which are not
	// updated yet. It becomes updateRevision when there are pods, all updated
	// and ready, and neither partition nor selector keeps others.
	//
	// +optional
	CurrentRevision string `json:"currentRevision,omitempty"`

	// updateRevision is the hash of the revision of the present template, as the
	// label controller-revision-hash of its pods has it.
	//
	// +optional
	UpdateRevision string `json:"updateRevision,omitempty"`

	// daemonSetHash is updateRevision in the words of v1alpha1.
	//
	// +optional
	DaemonSetHash string `json:"daemonSetHash,omitempty"`

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

	// blockers name what the update waits for, the worst first, at most 10.
	// Empty when nothing waits.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Blockers []Blocker `json:"blockers,omitempty"`
}
