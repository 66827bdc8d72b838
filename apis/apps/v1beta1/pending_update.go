// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import corev1 "k8s.io/api/core/v1"

// PendingUpdateKey is an annotation with a PendingUpdate as JSON. A pod has it
// from when the lifecycle hook inPlaceUpdate holds it until its containers run, so
// that the client that releases it can see what is about to happen.
const PendingUpdateKey = "insitu.dev/pending-update"

// PendingUpdate is the change for which a pod is held. It is not evidence of
// anything: another revision may overtake it, and then it is replaced.
//
// +kubebuilder:object:generate=true
type PendingUpdate struct {
	// revision is the name of the ControllerRevision that the pod is to become.
	Revision string `json:"revision"`
	// containers are the containers that will be restarted or resized.
	Containers []PendingContainerUpdate `json:"containers,omitempty"`
	// labels and annotations are the keys that will be set or removed.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	// tolerations are all that the pod will have; absent if they stay as they are.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// resources are the requests and limits that the pod as a whole has,
	// newResources those that it will have: only the keys that change. A key that
	// is only in one of them is added or removed.
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"`
	NewResources *corev1.ResourceRequirements `json:"newResources,omitempty"`
}

// PendingContainerUpdate is the change of one container.
//
// +kubebuilder:object:generate=true
type PendingContainerUpdate struct {
	// name is the name of the container or native sidecar.
	Name string `json:"name"`
	// image is what it runs, newImage what it will run. They name the same content
	// when the container is only restarted or resized.
	Image    string `json:"image"`
	NewImage string `json:"newImage"`
	// resources are its requests and limits, newResources those that it will have:
	// only the keys that change. A key that is only in one of them is added or
	// removed.
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"`
	NewResources *corev1.ResourceRequirements `json:"newResources,omitempty"`
}
