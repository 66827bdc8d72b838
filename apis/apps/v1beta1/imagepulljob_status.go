// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImagePullJobStatus is how far an ImagePullJob is. It counts nodes.
type ImagePullJobStatus struct {
	// observedGeneration is the metadata.generation that this status reflects. When
	// the spec changes, nodes that have failed try again.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// image is the image that this status is about. When the spec has another one,
	// all nodes pull that. Absent, the operator cannot tell which nodes are meant.
	//
	// +optional
	Image string `json:"image,omitempty"`

	// startTime is when the operator saw the job first.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job was complete. Absent, it is not.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// desired is the number of nodes that are to have the image.
	//
	// +required
	Desired int32 `json:"desired"`

	// active is the number of nodes that pull it.
	//
	// +required
	Active int32 `json:"active"`

	// succeeded is the number of nodes that have it.
	//
	// +required
	Succeeded int32 `json:"succeeded"`

	// failed is the number of nodes that could not pull it.
	//
	// +required
	Failed int32 `json:"failed"`

	// message says how far the job is, and what keeps it.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// failedNodes are the names of the nodes that could not pull the image, sorted.
	//
	// +optional
	// +listType=atomic
	FailedNodes []string `json:"failedNodes,omitempty"`

	// succeededNodes are the names of the nodes that have the image, sorted. The
	// list is empty when the job is complete.
	//
	// +optional
	// +listType=atomic
	SucceededNodes []string `json:"succeededNodes,omitempty"`

	// lastFailure names the node that has failed last, and says why.
	//
	// +optional
	LastFailure string `json:"lastFailure,omitempty"`

	// retryTime is when nodes that have failed try again, if the job is never
	// complete: ten minutes after the first of them failed.
	//
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`

	// roundTime is when all nodes began to pull, the last time. Those of a job that
	// is never complete do so each day, when all have ended.
	//
	// +optional
	RoundTime *metav1.Time `json:"roundTime,omitempty"`
}

// ImageListPullJobStatus is how far an ImageListPullJob is. It counts images.
type ImageListPullJobStatus struct {
	// observedGeneration is the metadata.generation that this status reflects.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// startTime is when the operator saw the job first.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the job was complete. Absent, it is not.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// desired is the number of images.
	//
	// +required
	Desired int32 `json:"desired"`

	// active is the number of images that nodes pull.
	//
	// +required
	Active int32 `json:"active"`

	// completed is the number of images that each node has pulled or could not pull.
	//
	// +required
	Completed int32 `json:"completed"`

	// succeeded is the number of images that each node has.
	//
	// +required
	Succeeded int32 `json:"succeeded"`

	// failedImageStatuses are the images that some node could not pull.
	//
	// +optional
	// +listType=atomic
	FailedImageStatuses []FailedImageStatus `json:"failedImageStatuses,omitempty"`
}

// FailedImageStatus is an image that some node could not pull.
type FailedImageStatus struct {
	// imagePullJob is the name of the ImagePullJob of the image, whose status names the nodes.
	//
	// +optional
	ImagePullJob string `json:"imagePullJob,omitempty"`

	// name is the image.
	//
	// +optional
	Name string `json:"name,omitempty"`

	// message says what came of the pull.
	//
	// +optional
	Message string `json:"message,omitempty"`
}
