// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
	// createdRevision is the name of the ControllerRevision that the pod had when it was changed in
	// place for the first time: that at which it was created. Absent, it is not known.
	CreatedRevision string `json:"createdRevision,omitempty"`
	// updateTimestamp is when the change was written, on the manager's clock,
	// to the second.
	UpdateTimestamp metav1.Time `json:"updateTimestamp"`
	// lastContainerStatuses holds, per container that the change restarts, what
	// ran before. Containers that are not named here were not touched.
	LastContainerStatuses map[string]InPlaceUpdateContainerStatus `json:"lastContainerStatuses,omitempty"`
	// nextContainerImages holds the images of the containers whose turn comes
	// when those changed so far are ready. While there are any, the pod is
	// between two revisions, whatever its label says.
	NextContainerImages map[string]string `json:"nextContainerImages,omitempty"`
	// nextContainerReads holds, per container of nextContainerImages whose
	// environment is read from what has been changed already, the field of the pod.
	NextContainerReads map[string]string `json:"nextContainerReads,omitempty"`
	// nextContainerResources holds, per container, the requests and limits that are
	// lowered when those changed so far are ready: only the keys that change. The
	// key "" holds those of the pod as a whole. While there are any, the pod is
	// between two revisions, whatever its label says.
	NextContainerResources map[string]corev1.ResourceRequirements `json:"nextContainerResources,omitempty"`
	// resized holds, per container that was resized, what the API server made of
	// the requests and limits in resizedFrom, which it was sent, where that is
	// something else: admission may rewrite them. The key "" holds those of the pod
	// as a whole.
	Resized     map[string]corev1.ResourceRequirements `json:"resized,omitempty"`
	ResizedFrom map[string]corev1.ResourceRequirements `json:"resizedFrom,omitempty"`
	// preCheckBeforeNext says what has to be before the next containers are
	// changed.
	PreCheckBeforeNext *InPlaceUpdatePreCheckBeforeNext `json:"preCheckBeforeNext,omitempty"`
	// containerBatchesRecord holds what was changed when, if it was not all at
	// once.
	ContainerBatchesRecord []InPlaceUpdateContainerBatch `json:"containerBatchesRecord,omitempty"`
	// equivalentImages holds, per container that was or is to be restarted by
	// spelling its image otherwise, the image as it was spelled before.
	EquivalentImages map[string]string `json:"equivalentImages,omitempty"`
	// recreateRequest says which containers were restarted for the ContainerRecreateRequest
	// that the pod was asked by last. Absent, there was none.
	RecreateRequest *InPlaceUpdateRecreateRequest `json:"recreateRequest,omitempty"`
}

// InPlaceUpdateContainerStatus is what was known of one container when its
// restart was requested.
//
// +kubebuilder:object:generate=true
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
	// earlierImages are further references that the container may have been
	// started from, because earlier changes had not been seen to complete.
	EarlierImages []string `json:"earlierImages,omitempty"`
	// envChanged is true when the change, or one that it overtook, altered a
	// label or an annotation that the environment of the container is read from.
	EnvChanged bool `json:"envChanged,omitempty"`
	// sameContent is true when all references from which the container may have
	// been started name one content, that of imageID: it is only restarted.
	SameContent bool `json:"sameContent,omitempty"`
	// resizing is true when the change restarts the container for its size, too, so
	// that the kubelet may start one from the earlier reference after it.
	Resizing bool `json:"resizing,omitempty"`
	// restarting is true when the kubelet was about to start the container anyway, and may have done
	// so from the earlier reference after the change: it did not run, or its size was being changed.
	Restarting bool `json:"restarting,omitempty"`
	// changed is when the change was written, where that was before updateTimestamp.
	Changed *metav1.Time `json:"changed,omitempty"`
	// superseding is true when an earlier change had not been seen to complete,
	// so that the kubelet may still start a container from the earlier reference
	// before it starts one from the present one.
	Superseding bool `json:"superseding,omitempty"`
}

// InPlaceUpdatePreCheckBeforeNext is what has to be before the next containers
// of a pod are changed.
//
// +kubebuilder:object:generate=true
type InPlaceUpdatePreCheckBeforeNext struct {
	// containersRequiredReady are the containers that have to be ready.
	ContainersRequiredReady []string `json:"containersRequiredReady,omitempty"`
}

// InPlaceUpdateContainerBatch is a batch of containers that were changed
// together.
//
// +kubebuilder:object:generate=true
type InPlaceUpdateContainerBatch struct {
	// timestamp is when the change was written.
	Timestamp metav1.Time `json:"timestamp"`
	// containers are the names of the containers.
	Containers []string `json:"containers"`
}

// InPlaceUpdateContainerRestartCount is how often a container had been restarted
// before its latest in-place update. It is an entry of the annotation
// RestartCountKey, by the name of the container.
//
// +kubebuilder:object:generate=true
type InPlaceUpdateContainerRestartCount struct {
	// revision is the name of the ControllerRevision that the container was
	// changed to.
	Revision string `json:"revision"`
	// restartCount is what the status of the container showed before.
	RestartCount int32 `json:"restartCount"`
}
