// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// VolumeClaimUpdateState is what the operator noted on a claim when it changed it
// last. It is the JSON value of the claim's annotation VolumeClaimUpdateStateKey,
// and is written in the same request as the change that it describes.
//
// +kubebuilder:object:generate=true
type VolumeClaimUpdateState struct {
	// size is the request that the claim was changed to; absent if it was not.
	Size *resource.Quantity `json:"size,omitempty"`
	// sizeTimestamp is when, on the manager's clock, to the second.
	SizeTimestamp metav1.Time `json:"sizeTimestamp,omitzero"`
	// attributesClass is the VolumeAttributesClass that the claim was changed to;
	// absent if it was not.
	AttributesClass string `json:"attributesClass,omitempty"`
	// attributesClassTimestamp is when.
	AttributesClassTimestamp metav1.Time `json:"attributesClassTimestamp,omitzero"`
	// inUseTimestamp is when the driver was found not to expand the volume while a
	// pod uses it.
	InUseTimestamp *metav1.Time `json:"inUseTimestamp,omitempty"`
	// detachTimestamp is when the pod was deleted for the volume to grow to size.
	DetachTimestamp *metav1.Time `json:"detachTimestamp,omitempty"`
	// detachedPod is the UID of that pod.
	DetachedPod types.UID `json:"detachedPod,omitempty"`
}
