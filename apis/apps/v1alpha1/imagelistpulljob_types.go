// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// ImageListPullJob is the v1beta1 ImageListPullJob under the older version.
//
// +kubebuilder:object:root=true
type ImageListPullJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which images are pulled onto which nodes.
	//
	// +required
	Spec appsv1beta1.ImageListPullJobSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	Status appsv1beta1.ImageListPullJobStatus `json:"status,omitzero"`
}

// ImageListPullJobList is a list of ImageListPullJobs.
//
// +kubebuilder:object:root=true
type ImageListPullJobList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the ImageListPullJobs.
	//
	// +required
	Items []ImageListPullJob `json:"items"`
}
