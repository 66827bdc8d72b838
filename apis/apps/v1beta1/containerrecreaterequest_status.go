// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequestPhase is how far a request, or one of its containers, is.
//
// +kubebuilder:validation:Enum=Pending;Recreating;Succeeded;Failed;Completed
type ContainerRecreateRequestPhase string

// The phases of requests and of their containers.
const (
	// ContainerRecreateRequestPending: another request of the pod comes before, or, of a container,
	// it has not been restarted yet.
	ContainerRecreateRequestPending ContainerRecreateRequestPhase = "Pending"
	// ContainerRecreateRequestRecreating: the request is carried out, or, of a container, it is
	// being restarted.
	ContainerRecreateRequestRecreating ContainerRecreateRequestPhase = "Recreating"
	// ContainerRecreateRequestSucceeded: the container was restarted, and is ready.
	ContainerRecreateRequestSucceeded ContainerRecreateRequestPhase = "Succeeded"
	// ContainerRecreateRequestFailed: the container cannot be restarted.
	ContainerRecreateRequestFailed ContainerRecreateRequestPhase = "Failed"
	// ContainerRecreateRequestCompleted: nothing more is done for the request. What came of it is
	// in the phases of its containers.
	ContainerRecreateRequestCompleted ContainerRecreateRequestPhase = "Completed"
)

// ContainerRecreateRequestStatus is how far a ContainerRecreateRequest is.
type ContainerRecreateRequestStatus struct {
	// phase is how far the request is.
	//
	//   - Pending: another request of the pod comes before it.
	//   - Recreating: its containers are restarted, or are about to be.
	//   - Completed: nothing more is done. containerRecreateStates says what came of it.
	//   - Succeeded: of containers only.
	//   - Failed: of containers only.
	//
	// Absent, the operator has not seen the request.
	//
	// +optional
	Phase ContainerRecreateRequestPhase `json:"phase,omitempty"`

	// completionTime is when the request was complete. Absent, it is not.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// message says what the request waits for or, once it is complete, why.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// containerRecreateStates are the states of its containers, in the order of the
	// spec.
	//
	// +optional
	// +listType=map
	// +listMapKey=name
	ContainerRecreateStates []ContainerRecreateRequestContainerRecreateState `json:"containerRecreateStates,omitempty"`
}

// ContainerRecreateRequestContainerRecreateState is how far the restart of a container is.
type ContainerRecreateRequestContainerRecreateState struct {
	// name is the name of the container.
	//
	// +required
	Name string `json:"name"`

	// phase is how far its restart is.
	//
	//   - Pending: it has not been restarted yet.
	//   - Recreating: it is being restarted, or is not ready for long enough.
	//   - Succeeded: it was restarted, and was ready for minStartedSeconds.
	//   - Failed: it cannot be restarted.
	//   - Completed: of requests only.
	//
	// Absent, it has not been looked at.
	//
	// +optional
	Phase ContainerRecreateRequestPhase `json:"phase,omitempty"`

	// message says why it is not restarted. Absent, there is nothing to say.
	//
	// +optional
	Message string `json:"message,omitempty"`

	// isKilled is true once the operator has had the container restarted. Defaults to
	// false, also of one that was restarted by itself.
	//
	// +optional
	IsKilled bool `json:"isKilled,omitempty"`

	// containerID is the ID of the container before its restart. Absent, it had never
	// started.
	//
	// +optional
	ContainerID string `json:"containerID,omitempty"`

	// restartCount is how often the container had been restarted before. Defaults to
	// 0.
	//
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`
}
