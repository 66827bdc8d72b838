// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Phase is where a workload is, in one word.
type Phase string

// The phases.
const (
	// Healthy: every pod is at the wanted revision and available.
	Healthy Phase = "Healthy"
	// Progressing: pods or claims are on their way, and no user has to do anything.
	Progressing Phase = "Progressing"
	// Paused: what is left waits for its owner: the update is paused, its partition is
	// reached, or pods are updated when they are deleted.
	Paused Phase = "Paused"
	// Stalled: the workload does not get on without a user's help.
	Stalled Phase = "Stalled"
	// Unknown: the operator has not said anything of the present spec.
	Unknown Phase = "Unknown"
)

// Ref names a workload.
type Ref struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
}

// Workload is what is told of a workload.
type Workload struct {
	Ref `json:",inline"`
	// UID is that of the object.
	UID types.UID `json:"uid"`
	// Driver says who updates the pods: Insitu, or Kubernetes where a native kind has
	// not opted in.
	Driver Driver `json:"driver"`
	// Phase is one word, Reason and Message say why.
	Phase   Phase  `json:"phase"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Held is true for a native workload whose own controller is held for the update.
	Held bool `json:"held,omitempty"`
	// Policy is the pod update policy: InPlaceIfPossible, InPlaceOnly, ReCreate.
	Policy string `json:"policy,omitempty"`
	// Counts of pods. Replicas are those wanted.
	Replicas  int32 `json:"replicas"`
	Updated   int32 `json:"updated"`
	Ready     int32 `json:"ready"`
	Available int32 `json:"available"`
	// InPlace and Recreated say how the updated pods got to the revision.
	InPlace   int32 `json:"inPlace"`
	Recreated int32 `json:"recreated"`
	// MaxUnavailable is the budget as a number of pods.
	MaxUnavailable int32 `json:"maxUnavailable"`
	// Partition is as the spec has it; empty if there is none.
	Partition string `json:"partition,omitempty"`
	// Paused is true while the update is paused by its owner.
	Paused bool `json:"paused,omitempty"`
	// Kept is the storage that is kept of recreated claims; absent if there is none.
	Kept *appsv1beta1.VolumeClaimKeptStatus `json:"kept,omitempty"`
	// Revisions are those that pods have or are to have, the one to come first.
	Revisions []Revision `json:"revisions"`
	// Pods are ordered by their names, ordinals as numbers.
	Pods []Pod `json:"pods"`
	// Blockers say what the workload waits for, the worst first.
	Blockers []Blocker `json:"blockers"`
	// CreationTimestamp is that of the object.
	CreationTimestamp metav1.Time `json:"creationTimestamp"`
}

// Driver is who updates the pods of a workload.
type Driver string

// The drivers.
const (
	Insitu     Driver = "Insitu"
	Kubernetes Driver = "Kubernetes"
)

// Revision is a revision of a workload.
type Revision struct {
	// Name is that of the ControllerRevision or, for a Deployment without one, of the
	// ReplicaSet.
	Name string `json:"name"`
	// Number is its place in the history; 0 if it is not known.
	Number int64 `json:"number,omitempty"`
	// Images of the containers, in the order of the template.
	Images []string `json:"images,omitempty"`
	// IsUpdate: pods are to get to it. IsCurrent: those that are kept stay at it.
	IsUpdate  bool `json:"isUpdate,omitempty"`
	IsCurrent bool `json:"isCurrent,omitempty"`
	// Pods is how many pods have it.
	Pods int32 `json:"pods"`
	// CreationTimestamp is when it was made.
	CreationTimestamp metav1.Time `json:"creationTimestamp,omitzero"`
}

// Pod is what is told of a pod.
type Pod struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
	Node string    `json:"node,omitempty"`
	IP   string    `json:"ip,omitempty"`
	// Revision is the name of the revision that the pod has; empty while it is between two.
	Revision string `json:"revision,omitempty"`
	// State is the step the pod is at, one of the states of package inplace, such as
	// Settled, Waiting, Draining, Restarting, Stuck; or Terminating.
	State string `json:"state"`
	// Reason and Message say why it is there; empty for a settled pod.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Since is when it came there, if that is known.
	Since metav1.Time `json:"since,omitzero"`
	// Updated: at the update revision. Available: serving as minReadySeconds has it.
	Updated   bool `json:"updated"`
	Ready     bool `json:"ready"`
	Available bool `json:"available"`
	// Kept: the partition keeps the pod at its revision.
	Kept bool `json:"kept,omitempty"`
	// InPlace: it got to its revision in place.
	InPlace bool `json:"inPlace,omitempty"`
	// Restarts are those of all containers, RestartsSinceUpdate those since the pod was
	// last changed in place.
	Restarts            int32       `json:"restarts"`
	RestartsSinceUpdate int32       `json:"restartsSinceUpdate"`
	CreationTimestamp   metav1.Time `json:"creationTimestamp"`
	Containers          []Container `json:"containers"`
	Claims              []Claim     `json:"claims,omitempty"`
}

// Container is what is told of a container that runs along: init containers that run
// once are left out.
type Container struct {
	Name string `json:"name"`
	// Sidecar: it is an init container with restartPolicy Always.
	Sidecar bool `json:"sidecar,omitempty"`
	// State is what the kubelet reports: Running, or the reason why it does not run, such
	// as ImagePullBackOff.
	State    string `json:"state"`
	Ready    bool   `json:"ready"`
	Restarts int32  `json:"restarts"`
	// Image is that of the pod's spec; WantedImage is that of the template, if it is another.
	Image       string `json:"image"`
	WantedImage string `json:"wantedImage,omitempty"`
	// Resources are those that the kubelet has applied; WantedResources those of the
	// template, if they are others.
	Resources       corev1.ResourceRequirements  `json:"resources,omitzero"`
	WantedResources *corev1.ResourceRequirements `json:"wantedResources,omitempty"`
}

// Claim is what is told of a claim of a pod.
type Claim struct {
	Name string `json:"name"`
	// Template is the name of the claim template; empty if the claim has none.
	Template string `json:"template,omitempty"`
	// Capacity is what it has, Requested what it asks for, Wanted what its template says,
	// where that is more.
	Capacity  string `json:"capacity,omitempty"`
	Requested string `json:"requested,omitempty"`
	Wanted    string `json:"wanted,omitempty"`
	Class     string `json:"class,omitempty"`
	Phase     string `json:"phase"`
	// Reason and Message say why it does not follow its template; empty if it does.
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Blocker is one thing that a workload waits for.
type Blocker struct {
	// Pod is the name of the pod that waits; empty where it is the whole workload.
	Pod string `json:"pod,omitempty"`
	// Step is where the pod is.
	Step   string `json:"step,omitempty"`
	Reason string `json:"reason"`
	// Message says in a sentence what is waited for.
	Message string `json:"message"`
	// Advice says what to do about it. "Nothing" is advice, too.
	Advice string `json:"advice"`
	// Since is when it began, if that is known.
	Since metav1.Time `json:"since,omitzero"`
	// NeedsHelp: it does not end by itself.
	NeedsHelp bool `json:"needsHelp,omitempty"`
}
