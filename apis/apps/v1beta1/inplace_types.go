// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// InPlaceUpdateStrategy are the details of in-place updates.
type InPlaceUpdateStrategy struct {
	// gracePeriodSeconds is how long, in seconds, a pod stays out of service
	// before its containers are changed. It counts from the moment at which no
	// endpoint lists the pod as ready any more. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	GracePeriodSeconds int32 `json:"gracePeriodSeconds,omitempty"`

	// imagePreDownloadParallelism is on how many nodes, or a percentage of the
	// pods, images are pulled at a time, if imagePull.parallelism is absent.
	// Absent, as imagePull.parallelism.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",messageExpression="'imagePreDownloadParallelism must be a number from 1, or a percentage from \"1%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	ImagePreDownloadParallelism *intstr.IntOrString `json:"imagePreDownloadParallelism,omitempty"`

	// imagePreDownloadTimeoutSeconds is how long, in seconds, is waited on each
	// node, if imagePull.timeoutSeconds is absent. Absent, or 0, as
	// imagePull.timeoutSeconds.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ImagePreDownloadTimeoutSeconds *int32 `json:"imagePreDownloadTimeoutSeconds,omitempty"`

	// imagePreDownloadMinUpdatedReadyPods is the number of updated and ready
	// pods from which on nodes pull images whose pods are not the next ones.
	// Absent, 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	ImagePreDownloadMinUpdatedReadyPods *int32 `json:"imagePreDownloadMinUpdatedReadyPods,omitempty"`

	// resize says how resources are changed, and what to do when they cannot be
	// at once. With podUpdatePolicy InPlaceOnly no pod is evicted: Recreate keeps
	// it too.
	//
	// +optional
	Resize *ResizePolicy `json:"resize,omitempty"`

	// keepReady names containers and native sidecars that restart without
	// taking the pod out of service. A change that restarts only these is made
	// at once: the pod is not drained, and gracePeriodSeconds are not waited
	// for. It counts against maxUnavailable. Names that the template does not
	// have are without effect.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	KeepReady []string `json:"keepReady,omitempty"`

	// podDisruptionBudget says whether in-place updates respect the
	// PodDisruptionBudgets that select the pod.
	//
	//   - Ignore: only maxUnavailable counts.
	//   - Respect: a ready pod is taken out of service only when the API server
	//     would allow its eviction, one pod of the namespace at a time. Pods that
	//     cannot change in place are evicted instead of deleted.
	//
	// Defaults to Ignore.
	//
	// +optional
	PodDisruptionBudget PodDisruptionBudgetPolicy `json:"podDisruptionBudget,omitempty"`

	// deadlineSeconds is after how many seconds a pod whose update does not
	// finish is reported as stuck: in status.blockers, in the condition
	// Stalled and by an event. Nothing is undone. Absent, none, but 45 s for
	// images.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	DeadlineSeconds *int32 `json:"deadlineSeconds,omitempty"`

	// imagePull says whether new images are pulled onto the node of a pod before
	// the pod is taken out of service. Absent, as the manager is configured: by
	// default they are required.
	//
	// +optional
	ImagePull *ImagePullPolicy `json:"imagePull,omitempty"`
}

// ImagePullPolicy says how images get onto the node of a pod that is updated in place.
type ImagePullPolicy struct {
	// policy says what a pod waits for.
	//
	//   - Require: the images are on the node. While they cannot be pulled, the
	//     pod stays as it is. If nothing can pull them, it is updated after
	//     timeoutSeconds.
	//   - Prefer: that, and not longer than timeoutSeconds.
	//   - None: nothing.
	//
	// Defaults to Require.
	//
	// +optional
	Policy ImagePullPolicyType `json:"policy,omitempty"`

	// timeoutSeconds is how long, in seconds, is waited on each node. Defaults to 300.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// parallelism is on how many nodes images are pulled at a time. Absent,
	// twice as many as pods may be unavailable.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	Parallelism *int32 `json:"parallelism,omitempty"`
}

// ImagePullPolicyType says what the in-place update of a pod waits for.
//
// +kubebuilder:validation:Enum=Require;Prefer;None
type ImagePullPolicyType string

const (
	// RequireImagePull waits until the images are on the node.
	RequireImagePull ImagePullPolicyType = "Require"
	// PreferImagePull waits for that, and not longer than timeoutSeconds.
	PreferImagePull ImagePullPolicyType = "Prefer"
	// NoImagePull does not wait.
	NoImagePull ImagePullPolicyType = "None"
)

// DefaultImagePullTimeoutSeconds is timeoutSeconds where it is absent.
const DefaultImagePullTimeoutSeconds = 300

// PodDisruptionBudgetPolicy says whether in-place updates respect
// PodDisruptionBudgets.
//
// +kubebuilder:validation:Enum=Ignore;Respect
type PodDisruptionBudgetPolicy string

const (
	// IgnorePodDisruptionBudget counts only maxUnavailable.
	IgnorePodDisruptionBudget PodDisruptionBudgetPolicy = "Ignore"
	// RespectPodDisruptionBudget waits until the pod's budgets allow a
	// disruption.
	RespectPodDisruptionBudget PodDisruptionBudgetPolicy = "Respect"
)

// ResizePolicy says how the resources of pods are changed, and what to do when
// they cannot be at once.
type ResizePolicy struct {
	// onDeferred applies while the node has no room for the new size, but could
	// have later. The pod runs at its old size meanwhile.
	//
	//   - Wait: keep the pod and wait, up to deferredTimeoutSeconds.
	//   - Recreate: evict the pod, within maxUnavailable.
	//
	// Defaults to Wait.
	//
	// +optional
	OnDeferred ResizeDeferredPolicy `json:"onDeferred,omitempty"`

	// onInfeasible applies when the node can never hold the new size or cannot
	// resize the pod, and when Wait has waited for too long.
	//
	//   - Keep: keep the pod at its old size and report it.
	//   - Recreate: evict the pod, within maxUnavailable.
	//
	// Defaults to Keep.
	//
	// +optional
	OnInfeasible ResizeFailurePolicy `json:"onInfeasible,omitempty"`

	// onError applies when the API server refuses the new size (quota,
	// LimitRange, a policy) or the node fails to apply it. What is
	// refused leaves the pod at its old revision.
	//
	//   - Keep: keep the pod at its old size and report it.
	//   - Recreate: evict the pod, within maxUnavailable.
	//
	// Defaults to Keep.
	//
	// +optional
	OnError ResizeFailurePolicy `json:"onError,omitempty"`

	// deferredTimeoutSeconds is how long, in seconds, Wait waits for room. What
	// onInfeasible says applies after that. Absent, it waits for ever.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	DeferredTimeoutSeconds *int32 `json:"deferredTimeoutSeconds,omitempty"`

	// maxConcurrent is the number of pods that are resized at a time without a
	// restart: a number from 1 (3), or a percentage of replicas from 1% to 100%
	// ("25%"), rounded down but never below 1. They do not count as unavailable.
	// Resizes that restart containers go by maxUnavailable. Defaults to 25%.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",messageExpression="'maxConcurrent must be a number from 1, or a percentage from \"1%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxConcurrent *intstr.IntOrString `json:"maxConcurrent,omitempty"`

	// drift applies to resources of a pod that another client has set, for example
	// a vertical autoscaler.
	//
	//   - Leave: they stay until a new revision changes them.
	//   - Enforce: they are set back to the template's.
	//
	// Defaults to Leave.
	//
	// +optional
	Drift ResizeDriftPolicy `json:"drift,omitempty"`
}

// ResizeDeferredPolicy says what to do when the node has no room now.
//
// +kubebuilder:validation:Enum=Wait;Recreate
type ResizeDeferredPolicy string

const (
	// WaitResizeDeferred keeps the pod and waits.
	WaitResizeDeferred ResizeDeferredPolicy = "Wait"
	// RecreateResizeDeferred evicts the pod, within maxUnavailable.
	RecreateResizeDeferred ResizeDeferredPolicy = "Recreate"
)

// ResizeFailurePolicy says what to do with a pod that does not get its new
// size.
//
// +kubebuilder:validation:Enum=Keep;Recreate
type ResizeFailurePolicy string

const (
	// KeepResizeFailure keeps the pod at its old size and reports it.
	KeepResizeFailure ResizeFailurePolicy = "Keep"
	// RecreateResizeFailure evicts the pod, within maxUnavailable.
	RecreateResizeFailure ResizeFailurePolicy = "Recreate"
)

// ResizeDriftPolicy says what to do with resources that another client changed.
//
// +kubebuilder:validation:Enum=Leave;Enforce
type ResizeDriftPolicy string

const (
	// LeaveResizeDrift leaves them as they are.
	LeaveResizeDrift ResizeDriftPolicy = "Leave"
	// EnforceResizeDrift sets them back to the template's.
	EnforceResizeDrift ResizeDriftPolicy = "Enforce"
)
