// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// CloneSet is the v1beta1 CloneSet under the older version.
//
// +kubebuilder:object:root=true
type CloneSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is limited to 52
	// characters.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec appsv1beta1.CloneSetSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	Status appsv1beta1.CloneSetStatus `json:"status,omitzero"`
}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the CloneSets.
	//
	// +required
	Items []CloneSet `json:"items"`
}
