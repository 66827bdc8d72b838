// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ContainerRecreateRequest asks for containers of a pod to be restarted. The pod stays, and so do
// its other containers.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=containerrecreaterequests,singular=containerrecreaterequest,scope=Namespaced,shortName=crr
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="PHASE",type=string,JSONPath=`.status.phase`,description="How far the request is"
// +kubebuilder:printcolumn:name="POD",type=string,JSONPath=`.spec.podName`,description="Name of the pod"
// +kubebuilder:printcolumn:name="NODE",type=string,JSONPath=`.metadata.labels.crr\.apps\.kruise\.io/node-name`,description="Node of the pod"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,priority=1,JSONPath=`.status.message`,description="What the request waits for, or what came of it"
type ContainerRecreateRequest struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which containers of which pod are restarted, and how. What users set in
	// it cannot be changed, but for ttlSecondsAfterFinished.
	//
	// +required
	Spec ContainerRecreateRequestSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	Status ContainerRecreateRequestStatus `json:"status,omitzero"`
}

// ContainerRecreateRequestList is a list of ContainerRecreateRequests.
//
// +kubebuilder:object:root=true
type ContainerRecreateRequestList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the ContainerRecreateRequests.
	//
	// +required
	Items []ContainerRecreateRequest `json:"items"`
}

// ContainerRecreateRequestSpec says which containers of which pod are restarted, and how.
//
// +kubebuilder:validation:XValidation:rule="self.podName == oldSelf.podName",fieldPath=".podName",message="podName cannot be changed: make another request"
// +kubebuilder:validation:XValidation:rule="self.containers.map(c, c.name) == oldSelf.containers.map(c, c.name)",fieldPath=".containers",message="containers cannot be changed: make another request"
// +kubebuilder:validation:XValidation:rule="self.strategy == oldSelf.strategy",fieldPath=".strategy",message="strategy cannot be changed: make another request"
// +kubebuilder:validation:XValidation:rule="has(self.activeDeadlineSeconds) == has(oldSelf.activeDeadlineSeconds) && (!has(self.activeDeadlineSeconds) || self.activeDeadlineSeconds == oldSelf.activeDeadlineSeconds)",fieldPath=".activeDeadlineSeconds",message="activeDeadlineSeconds cannot be changed: make another request"
type ContainerRecreateRequestSpec struct {
	// podName is the name of the pod, in the namespace of the request. The request is
	// about the pod that has the name when the operator sees the request first, and
	// about no later one.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	PodName string `json:"podName,omitempty"`

	// containers are the containers that are restarted, each once: those in
	// spec.containers of the pod, and native sidecars.
	//
	// +required
	// +listType=map
	// +listMapKey=name
	// +patchMergeKey=name
	// +patchStrategy=merge
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Containers []ContainerRecreateRequestContainer `json:"containers,omitempty" patchMergeKey:"name" patchStrategy:"merge"`

	// strategy says how the containers are restarted.
	//
	// +optional
	// +kubebuilder:default={}
	Strategy *ContainerRecreateRequestStrategy `json:"strategy,omitempty"`

	// activeDeadlineSeconds is after how many seconds, since its creation, the request
	// is complete whatever its containers do. What has been begun goes on. At least
	// 3. Absent, there is no such time.
	//
	// +optional
	// +kubebuilder:validation:Minimum=3
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is after how many seconds a complete request is
	// deleted. Absent, it is not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContainerRecreateRequestContainer is a container that is restarted. Users set its name only:
// OpenKruise adds the other fields to the requests that it accepts.
type ContainerRecreateRequestContainer struct {
	// name is the name of the container.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name,omitempty"`

	// preStop is the hook of the container that runs before it is stopped. A request
	// with another one than the container has is complete at once, and restarts
	// nothing: the kubelet runs the container's own. Absent, that of the container.
	//
	// +optional
	PreStop *corev1.LifecycleHandler `json:"preStop,omitempty"`

	// ports are the ports of the container. The operator does not read them.
	//
	// +optional
	// +listType=atomic
	Ports []corev1.ContainerPort `json:"ports,omitempty"`

	// statusContext is what the status of the pod said of the container when the
	// request was made. Absent, it is what the status says when the operator sees the
	// request first.
	//
	// +optional
	StatusContext *ContainerRecreateRequestContainerContext `json:"statusContext,omitempty"`
}

// ContainerRecreateRequestContainerContext is what the status of a pod said of a container.
type ContainerRecreateRequestContainerContext struct {
	// containerID is the ID of the container. Absent, it had never started.
	//
	// +optional
	ContainerID string `json:"containerID,omitempty"`

	// restartCount is how often the container had been restarted. Defaults to 0.
	//
	// +optional
	RestartCount int32 `json:"restartCount,omitempty"`
}

// ContainerRecreateRequestFailurePolicyType says what becomes of the other containers when one
// cannot be restarted.
//
// +kubebuilder:validation:Enum=Fail;Ignore
type ContainerRecreateRequestFailurePolicyType string

const (
	// ContainerRecreateRequestFailurePolicyFail leaves the others as they are.
	ContainerRecreateRequestFailurePolicyFail ContainerRecreateRequestFailurePolicyType = "Fail"
	// ContainerRecreateRequestFailurePolicyIgnore restarts the others all the same.
	ContainerRecreateRequestFailurePolicyIgnore ContainerRecreateRequestFailurePolicyType = "Ignore"
)

// ContainerRecreateRequestStrategy says how containers are restarted.
type ContainerRecreateRequestStrategy struct {
	// failurePolicy says what becomes of the other containers when one cannot be
	// restarted.
	//
	//   - Fail: those that have not been restarted yet are left as they are.
	//   - Ignore: they are restarted.
	//
	// Defaults to Fail.
	//
	// +optional
	// +kubebuilder:default=Fail
	FailurePolicy ContainerRecreateRequestFailurePolicyType `json:"failurePolicy,omitempty"`

	// orderedRecreate has a container restarted when the one before it in the list
	// has succeeded. Those that an update changes anyway are restarted with it. Defaults
	// to false: all are restarted at once.
	//
	// +optional
	OrderedRecreate bool `json:"orderedRecreate,omitempty"`

	// forceRecreate has also those containers restarted that have been restarted by
	// themselves since the request was made. Defaults to false.
	//
	// +optional
	ForceRecreate bool `json:"forceRecreate,omitempty"`

	// terminationGracePeriodSeconds is how many seconds a container has to stop. The
	// kubelet stops containers within the time that the pod says: a request that says
	// another one is complete at once, and restarts nothing. Absent, that of the pod.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TerminationGracePeriodSeconds *int64 `json:"terminationGracePeriodSeconds,omitempty"`

	// unreadyGracePeriodSeconds is for how many seconds the pod is out of service
	// before its containers are stopped: not ready, and in no EndpointSlice of a
	// Service. Absent, a pod of a StatefulSet, CloneSet or DaemonSet of apps.kruise.io
	// is taken out of service as for an update, and any other pod is not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	UnreadyGracePeriodSeconds *int64 `json:"unreadyGracePeriodSeconds,omitempty"`

	// minStartedSeconds is for how many seconds a restarted container runs, and is
	// ready, before it has succeeded. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinStartedSeconds int32 `json:"minStartedSeconds,omitempty"`
}
