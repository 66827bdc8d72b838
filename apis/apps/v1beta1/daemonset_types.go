// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// DaemonSet runs a pod on each node that the template selects, and changes the pods in place
// where it can.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=daemonsets,singular=daemonset,scope=Namespaced,shortName=ads;daemon,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.status.desiredNumberScheduled`,description="Number of nodes that are to run a pod"
// +kubebuilder:printcolumn:name="CURRENT",type=integer,JSONPath=`.status.currentNumberScheduled`,description="Number of those nodes that have a pod"
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.numberReady`,description="Number of those nodes that have a ready pod"
// +kubebuilder:printcolumn:name="UP-TO-DATE",type=integer,JSONPath=`.status.updatedNumberScheduled`,description="Number of those nodes that have a pod at the update revision"
// +kubebuilder:printcolumn:name="AVAILABLE",type=integer,JSONPath=`.status.numberAvailable`,description="Number of those nodes that have an available pod"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CONTAINERS",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].name`,description="First container of the pod template"
// +kubebuilder:printcolumn:name="IMAGES",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="Image of the first container"
// +kubebuilder:printcolumn:name="BLOCKED",type=string,priority=1,JSONPath=`.status.blockers[0].reason`,description="Why the update waits: reason of the first blocker"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 240",optionalOldSelf=true,messageExpression="'metadata.name must be at most 240 characters, because the names of revisions are built from it; found \"' + self.metadata.name + '\"'"
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
	Spec DaemonSetSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1,"currentNumberScheduled":0,"numberMisscheduled":0,"desiredNumberScheduled":0,"numberReady":0,"updatedNumberScheduled":0}
	Status DaemonSetStatus `json:"status,omitzero"`
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

// DaemonSetSpec is the desired state of a DaemonSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, has(self.template.metadata) && has(self.template.metadata.labels) && k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",fieldPath=".template.metadata.labels",message="template.metadata.labels must hold every label of selector.matchLabels with the same value"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, has(self.template.metadata) && has(self.template.metadata.labels) && e.key in self.template.metadata.labels ? e.operator == 'Exists' || has(e.values) && (e.operator == 'In' && self.template.metadata.labels[e.key] in e.values || e.operator == 'NotIn' && !(self.template.metadata.labels[e.key] in e.values)) : e.operator in ['NotIn', 'DoesNotExist'])",fieldPath=".template.metadata.labels",message="template.metadata.labels must match every entry of selector.matchExpressions"
type DaemonSetSpec struct {
	// selector selects the pods of the set. It must not be empty, must match
	// the labels of the template and cannot be changed.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="selector must not be empty: name at least one label in matchLabels or matchExpressions"
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0 ? has(oldSelf.matchLabels) && self.matchLabels == oldSelf.matchLabels : !has(oldSelf.matchLabels) || oldSelf.matchLabels.size() == 0) && (has(self.matchExpressions) && self.matchExpressions.size() > 0 ? has(oldSelf.matchExpressions) && self.matchExpressions == oldSelf.matchExpressions : !has(oldSelf.matchExpressions) || oldSelf.matchExpressions.size() == 0)",message="selector cannot be changed, because running pods are found by it"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// template describes the pods. Its nodeName, nodeSelector, node affinity and
	// tolerations say which nodes run one. A change of it makes a new revision.
	// restartPolicy must be Always or absent, activeDeadlineSeconds absent.
	// If rollingUpdateType is in place, new pods have the readiness gate
	// InPlaceUpdateReady, listed or not. Fields that this release does not
	// know are refused under strict field validation, the default of
	// kubectl, and named in a warning otherwise.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",messageExpression="'template.spec.restartPolicy must be Always or absent; found ' + self.spec.restartPolicy"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.activeDeadlineSeconds)",fieldPath=".spec.activeDeadlineSeconds",message="template.spec.activeDeadlineSeconds must be absent, because pods of a DaemonSet run for ever"
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// updateStrategy says how a new revision reaches the pods.
	//
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy DaemonSetUpdateStrategy `json:"updateStrategy,omitzero"`

	// scaleStrategy says how pods are created on nodes that have none.
	//
	// +optional
	ScaleStrategy *DaemonSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// minReadySeconds is how long, in seconds, a pod must have been ready to
	// count as available. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// burstReplicas is how many pods are created, and how many are deleted, at
	// a time: a number from 0 (250), or a percentage of the nodes that are to
	// run a pod from 0% to 100% ("20%"), rounded down. At least one is.
	// Defaults to 250.
	//
	// +optional
	// +kubebuilder:default=250
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]|[1-9][0-9]|100)%$')",messageExpression="'burstReplicas must be a number from 0, or a percentage from \"0%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	BurstReplicas *intstr.IntOrString `json:"burstReplicas,omitempty"`

	// revisionHistoryLimit is the number of unused revisions kept for a
	// rollback. Defaults to 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// lifecycle holds pods at defined points until another client releases them.
	// A pod that preDelete holds since its node is not selected any more goes
	// back to Normal when the node is selected again.
	//
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`
}

// DaemonSetScaleStrategy says how pods are created on nodes that have none.
type DaemonSetScaleStrategy struct {
	// partitionedScaling lets the partition limit creations as it limits
	// updates: pods are made on nodes that have none, those with the lowest
	// names first, as long as the partition leaves room for pods at the update
	// revision. Other nodes wait without a pod. Absent, each new node gets its
	// pod at once, at the update revision, whatever the partition says.
	// Defaults to false.
	//
	// +optional
	PartitionedScaling bool `json:"partitionedScaling,omitempty"`
}

// DaemonSetUpdateStrategy says how a new revision reaches the pods.
type DaemonSetUpdateStrategy struct {
	// type is the strategy.
	//
	//   - RollingUpdate: the operator updates the pods, within the budget.
	//   - OnDelete: a pod gets the new revision when a user deletes it.
	//
	// Defaults to RollingUpdate.
	//
	// +optional
	// +kubebuilder:default=RollingUpdate
	// +kubebuilder:validation:Enum=RollingUpdate;OnDelete
	Type appsv1.DaemonSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate are the parameters of type RollingUpdate. With OnDelete,
	// they mean nothing.
	//
	// +optional
	RollingUpdate *RollingUpdateDaemonSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateDaemonSetStrategy are the parameters of a rolling update.
//
// +kubebuilder:validation:XValidation:rule="!has(self.maxSurge) || self.maxSurge in [dyn(0), dyn('0%')] || !has(self.maxUnavailable) || self.maxUnavailable in [dyn(0), dyn('0%')]",message="one of maxUnavailable and maxSurge must be 0 or absent: either the old pod of a node goes before the new one comes, or after"
// +kubebuilder:validation:XValidation:rule="!has(self.maxUnavailable) || !(self.maxUnavailable in [dyn(0), dyn('0%')]) || self.?rollingUpdateType.orValue('Standard') == 'Surging' || has(self.maxSurge) && !(self.maxSurge in [dyn(0), dyn('0%')])",message="maxUnavailable and maxSurge must not both be 0, because then no pod could be updated"
// +kubebuilder:validation:XValidation:rule="!(self.?rollingUpdateType.orValue('Standard') in ['InPlaceIfPossible', 'InPlaceOnly']) || !has(self.maxSurge) || self.maxSurge in [dyn(0), dyn('0%')]",fieldPath=".maxSurge",messageExpression="'maxSurge must be 0 or absent with rollingUpdateType ' + self.rollingUpdateType + ', because pods are changed where they are'"
// +kubebuilder:validation:XValidation:rule="self.?rollingUpdateType.orValue('Standard') != 'Surging' || !has(self.maxUnavailable) || self.maxUnavailable in [dyn(0), dyn('0%')]",fieldPath=".maxUnavailable",message="maxUnavailable must be 0 or absent with rollingUpdateType Surging: the old pod of a node goes when the new one is available"
type RollingUpdateDaemonSetStrategy struct {
	// rollingUpdateType says how a pod gets the new revision.
	//
	//   - Standard: it is deleted and created again on its node, within
	//     maxUnavailable; with maxSurge, after the new one is available.
	//   - Surging: Standard with maxSurge, which defaults to 1 then. In the words
	//     of v1alpha1.
	//   - InPlaceIfPossible: it is changed in place where the change allows it,
	//     else recreated. An event names the field that did not allow it.
	//   - InPlaceOnly: it is changed in place, or left as it is. An event names
	//     the field that did not allow it.
	//
	// Defaults to Standard.
	//
	// +optional
	// +kubebuilder:default=Standard
	RollingUpdateType DaemonSetRollingUpdateType `json:"rollingUpdateType,omitempty"`

	// maxUnavailable is the number of nodes whose pod may be unavailable during
	// the update: a number from 0 (3), or a percentage of the nodes that are to
	// run a pod from 0% to 100% ("20%"), rounded up. Nodes that are not ready
	// do not use it up. Defaults to 1, and to 0 with maxSurge.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]|[1-9][0-9]|100)%$')",messageExpression="'maxUnavailable must be a number from 0, or a percentage from \"0%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is the number of nodes that may run a new pod beside the old one
	// during the update: a number from 0 (3), or a percentage of the nodes that
	// are to run a pod from 0% to 100% ("20%"), rounded up. The old pod goes
	// when the new one is available. With InPlaceIfPossible and InPlaceOnly it
	// must be 0. Defaults to 0, and to 1 with Surging.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]|[1-9][0-9]|100)%$')",messageExpression="'maxSurge must be a number from 0, or a percentage from \"0%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// partition is the number of nodes whose pods stay at the old revision: a
	// number from 0 (3), or a percentage of the nodes that are to run a pod from
	// 0% to 100% ("20%"), rounded down. Those of the nodes with the lowest names
	// stay, of those that are not updated yet. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]|[1-9][0-9]|100)%$')",messageExpression="'partition must be a number from 0, or a percentage from \"0%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// selector selects the nodes whose pods are updated, by their labels; pods
	// of other nodes stay at their revision. Absent, those of all nodes are.
	//
	// +optional
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// paused stops the update, but not the creation of pods on new nodes and the
	// replacement of lost ones. Defaults to false.
	//
	// +optional
	Paused *bool `json:"paused,omitempty"`

	// inPlaceUpdateStrategy are the details of in-place updates.
	//
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// DaemonSetRollingUpdateType says how a pod gets a new revision.
//
// +kubebuilder:validation:Enum=Standard;Surging;InPlaceIfPossible;InPlaceOnly
type DaemonSetRollingUpdateType string

const (
	// StandardDaemonSetRollingUpdateType deletes a pod, and creates one at the new revision.
	StandardDaemonSetRollingUpdateType DaemonSetRollingUpdateType = "Standard"
	// SurgingDaemonSetRollingUpdateType is Standard with a surge of 1, if nothing else is said.
	SurgingDaemonSetRollingUpdateType DaemonSetRollingUpdateType = "Surging"
	// InPlaceIfPossibleDaemonSetRollingUpdateType changes a pod in place where the change
	// allows it, and recreates it otherwise.
	InPlaceIfPossibleDaemonSetRollingUpdateType DaemonSetRollingUpdateType = "InPlaceIfPossible"
	// InPlaceOnlyDaemonSetRollingUpdateType changes a pod in place, and leaves it as it is where
	// the change does not allow that.
	InPlaceOnlyDaemonSetRollingUpdateType DaemonSetRollingUpdateType = "InPlaceOnly"
)
