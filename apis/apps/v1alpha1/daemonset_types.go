// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// DaemonSet is the v1beta1 DaemonSet under the older version.
//
// +kubebuilder:object:root=true
type DaemonSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is limited to 240
	// characters.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec appsv1beta1.DaemonSetSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	Status appsv1beta1.DaemonSetStatus `json:"status,omitzero"`
}

// DaemonSetList is a list of DaemonSets.
//
// +kubebuilder:object:root=true
type DaemonSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the DaemonSets.
	//
	// +required
	Items []DaemonSet `json:"items"`
}
