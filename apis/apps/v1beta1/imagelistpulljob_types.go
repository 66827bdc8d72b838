// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ImageListPullJob pulls several images onto nodes: for each there is an ImagePullJob, which
// belongs to it.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=imagelistpulljobs,singular=imagelistpulljob,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.desired`,description="Number of images"
// +kubebuilder:printcolumn:name="SUCCEEDED",type=integer,JSONPath=`.status.succeeded`,description="Number of images that each node has"
// +kubebuilder:printcolumn:name="COMPLETED",type=integer,JSONPath=`.status.completed`,description="Number of images that each node has pulled or could not pull"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
type ImageListPullJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which images are pulled onto which nodes. Once the job has
	// completed, changes of it do nothing.
	//
	// +required
	Spec ImageListPullJobSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	Status ImageListPullJobStatus `json:"status,omitzero"`
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

// ImageListPullJobSpec says which images are pulled onto which nodes. What it says beside the
// images holds for each of them: so many nodes pull each image at a time. When it changes, all
// images are pulled again.
//
// +kubebuilder:validation:XValidation:rule="!has(self.completionPolicy.activeDeadlineSeconds) || self.completionPolicy.activeDeadlineSeconds >= self.pullPolicy.timeoutSeconds",fieldPath=".completionPolicy.activeDeadlineSeconds",message="completionPolicy.activeDeadlineSeconds must be at least pullPolicy.timeoutSeconds, which is 600 by default: no try could take that long"
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.podSelector)",fieldPath=".podSelector",message="selector and podSelector must not both be there: select nodes, or the pods whose nodes are meant"
type ImageListPullJobSpec struct {
	// images are the images, each once: 1 to 255.
	//
	// +required
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	Images []string `json:"images,omitempty"`

	ImagePullJobTemplate `json:",inline"`
}
