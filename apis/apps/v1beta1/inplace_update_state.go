// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// InPlaceUpdateState says what the last in-place update of a pod changed, and
// what was running before it. It is the evidence from which completion is
// judged later, by whoever reads the pod. It is the JSON value of the pod
// annotation InPlaceUpdateStateKey, and is written in the same request as the
// change that it describes.
//
// +kubebuilder:object:generate=true
type InPlaceUpdateState struct {
	// revision is the name of the ControllerRevision that the pod was changed to.
	Revision string `json:"revision"`
	// updateTimestamp is when the change was written, on the manager's clock,
	// to the second.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// lastContainerStatuses holds, per container that the change restarts, what
	// ran before. Containers that are not named here were not touched.
	LastContainerStatuses map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses,omitempty"`
}

// InPlaceUpdateContainerStatus is what was known of one container when its
// restart was requested.
type InPlaceUpdateContainerStatus struct {
	// imageID is the image ID that the container status showed; empty if the
	// container had never started.
	ImageID string `json:"imageID,omitempty"`
	// containerID is the container ID that the container status showed; empty if
	// the container had never started.
	ContainerID string `json:"containerID,omitempty"`
	// image is the reference that containerID was started from. It is empty when
	// that is not certain: the container was restarted after an earlier change
	// that was never seen to complete.
	Image string `json:"image,omitempty"`
	// superseding is true when an earlier change had not been seen to complete,
	// so that the kubelet may still start a container from the earlier reference
	// before it starts one from the present one.
	Superseding bool `json:"superseding,omitempty"`
}
