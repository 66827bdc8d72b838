// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ImagePullJob pulls an image onto nodes. On each, a pod has the kubelet do it, and runs nothing
// of the image.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=imagepulljobs,singular=imagepulljob,scope=Namespaced
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.desired`,description="Number of nodes that are to have the image"
// +kubebuilder:printcolumn:name="ACTIVE",type=integer,JSONPath=`.status.active`,description="Number of nodes that pull it"
// +kubebuilder:printcolumn:name="SUCCEED",type=integer,JSONPath=`.status.succeeded`,description="Number of nodes that have it"
// +kubebuilder:printcolumn:name="FAILED",type=integer,JSONPath=`.status.failed`,description="Number of nodes that could not pull it"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="MESSAGE",type=string,JSONPath=`.status.message`,description="How far the job is"
type ImagePullJob struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec says which image is pulled onto which nodes. Once the job has
	// completed, changes of it do nothing.
	//
	// +required
	Spec ImagePullJobSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	Status ImagePullJobStatus `json:"status,omitzero"`
}

// ImagePullJobList is a list of ImagePullJobs.
//
// +kubebuilder:object:root=true
type ImagePullJobList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the ImagePullJobs.
	//
	// +required
	Items []ImagePullJob `json:"items"`
}

// ImagePullJobSpec says which image is pulled onto which nodes.
//
// +kubebuilder:validation:XValidation:rule="!has(self.completionPolicy.activeDeadlineSeconds) || self.completionPolicy.activeDeadlineSeconds >= self.pullPolicy.timeoutSeconds",fieldPath=".completionPolicy.activeDeadlineSeconds",message="completionPolicy.activeDeadlineSeconds must be at least pullPolicy.timeoutSeconds, which is 600 by default: no try could take that long"
// +kubebuilder:validation:XValidation:rule="!has(self.selector) || !has(self.podSelector)",fieldPath=".podSelector",message="selector and podSelector must not both be there: select nodes, or the pods whose nodes are meant"
// +kubebuilder:validation:XValidation:rule="(has(self.pullSecrets) ? self.pullSecrets : []) == (has(oldSelf.pullSecrets) ? oldSelf.pullSecrets : [])",fieldPath=".pullSecrets",message="pullSecrets cannot be changed: make another job"
type ImagePullJobSpec struct {
	// image is the image, as in a container. When it changes, it is pulled onto all
	// nodes of the job.
	//
	// +required
	Image string `json:"image,omitempty"`

	ImagePullJobTemplate `json:",inline"`
}

// ImagePullJobTemplate says onto which nodes images are pulled, and how.
type ImagePullJobTemplate struct {
	// pullSecrets are the names of the secrets for the registry, in the namespace of
	// the job, as imagePullSecrets of a pod. The operator does not read them. Absent,
	// those of the service account default.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PullSecrets []string `json:"pullSecrets,omitempty"`

	// selector selects the nodes. Absent, together with podSelector, all nodes
	// but those that are virtual.
	//
	// +optional
	Selector *ImagePullJobNodeSelector `json:"selector,omitempty"`

	// podSelector selects pods in the namespace of the job, on whose nodes the image
	// is to be. An empty one selects all of them.
	//
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`

	// parallelism is how many nodes pull at a time: a number from 0, also as a string
	// ("10"). With 0, no node begins. Defaults to 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=9
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]+$')",messageExpression="'parallelism must be a number from 0, and no percentage; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	Parallelism *intstr.IntOrString `json:"parallelism,omitempty"`

	// pullPolicy says how long and how often a node tries.
	//
	// +optional
	// +kubebuilder:default={}
	PullPolicy ImagePullJobPullPolicy `json:"pullPolicy,omitzero"`

	// completionPolicy says when the job is complete.
	//
	// +optional
	// +kubebuilder:default={}
	CompletionPolicy CompletionPolicy `json:"completionPolicy,omitzero"`

	// sandboxConfig is for registries and runtimes that read labels or annotations of
	// the pod for which an image is pulled.
	//
	// +optional
	SandboxConfig *SandboxConfig `json:"sandboxConfig,omitempty"`

	// imagePullPolicy says whether a node that has the image asks the registry again.
	//
	//   - IfNotPresent: it does not.
	//   - Always: it does, and pulls what is different there.
	//
	// Defaults to IfNotPresent.
	//
	// +optional
	// +kubebuilder:default=IfNotPresent
	// +kubebuilder:validation:Enum=IfNotPresent;Always
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
}

// ImagePullJobNodeSelector selects nodes, by their names or by their labels.
//
// +kubebuilder:validation:XValidation:rule="!has(self.names) || self.names.size() == 0 || !has(self.matchLabels) && !has(self.matchExpressions)",fieldPath=".names",message="names and labels must not both be there: name the nodes, or select them by matchLabels and matchExpressions"
type ImagePullJobNodeSelector struct {
	// names are the names of the nodes. Those that there are not are left out until
	// they are there.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=5000
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	Names []string `json:"names,omitempty"`

	metav1.LabelSelector `json:",inline"`
}

// ImagePullJobPullPolicy says how long and how often a node tries to pull.
type ImagePullJobPullPolicy struct {
	// timeoutSeconds is after how many seconds a try has failed. One that the
	// kubelet reports as failed has so at once. Defaults to 600.
	//
	// +optional
	// +kubebuilder:default=600
	// +kubebuilder:validation:Minimum=1
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// backoffLimit is how often a node tries before it counts as failed; at least
	// once. Between two tries are seconds, 30 at most. Defaults to 3.
	//
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=0
	BackoffLimit *int32 `json:"backoffLimit,omitempty"`
}

// CompletionPolicyType says when a job is complete.
//
// +kubebuilder:validation:Enum=Always;Never
type CompletionPolicyType string

const (
	// AlwaysCompletion completes a job when each node has succeeded or failed.
	AlwaysCompletion CompletionPolicyType = "Always"
	// NeverCompletion completes no job: it serves nodes that come later.
	NeverCompletion CompletionPolicyType = "Never"
)

// CompletionPolicy says when a job is complete, and what becomes of it then.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'Never' || !has(self.activeDeadlineSeconds) && !has(self.ttlSecondsAfterFinished)",message="completionPolicy with type Never must not have activeDeadlineSeconds and ttlSecondsAfterFinished: such a job does not complete"
type CompletionPolicy struct {
	// type says when the job is complete.
	//
	//   - Always: when each node has succeeded or failed, at once where none is selected.
	//   - Never: it goes on, and pulls onto nodes that come later, when they are
	//     ready. Nodes that have failed try again ten minutes after the first of
	//     them failed, and all nodes pull again each day.
	//
	// Defaults to Always.
	//
	// +optional
	// +kubebuilder:default=Always
	Type CompletionPolicyType `json:"type,omitempty"`

	// activeDeadlineSeconds is after how many seconds the job is complete whatever
	// its nodes have done: those that have not succeeded have failed. It is at
	// least pullPolicy.timeoutSeconds. Absent, there is no such time.
	//
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2147483647
	ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`

	// ttlSecondsAfterFinished is after how many seconds a complete job is
	// deleted. Absent, it is not.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// SandboxConfig is what runtimes see of the pod for which an image is pulled.
type SandboxConfig struct {
	// labels are labels of the pods that pull.
	//
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// annotations are annotations of the pods that pull.
	//
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}
