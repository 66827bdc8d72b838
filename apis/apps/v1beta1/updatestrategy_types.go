// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxMinReadySeconds is the largest accepted minReadySeconds.
const MaxMinReadySeconds = 300

// StatefulSetUpdateStrategy says how a new revision reaches the pods.
//
// Beside OnDelete, a rollingUpdate that holds nothing but defaults is accepted: the API
// server fills them in.
//
// +kubebuilder:validation:XValidation:rule="self.type != 'OnDelete' || !has(self.rollingUpdate) || self.rollingUpdate.partition == 0 && self.rollingUpdate.maxUnavailable == 1 && self.rollingUpdate.podUpdatePolicy == 'ReCreate' && self.rollingUpdate.minReadySeconds == 0 && !self.?rollingUpdate.paused.orValue(false) && !has(self.rollingUpdate.unorderedUpdate) && !has(self.rollingUpdate.inPlaceUpdateStrategy)",fieldPath=".rollingUpdate",message="updateStrategy.rollingUpdate is only accepted with type RollingUpdate; found type OnDelete: remove rollingUpdate or change the type"
type StatefulSetUpdateStrategy struct {
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
	Type appsv1.StatefulSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate are the parameters of type RollingUpdate. The API server fills in
	// defaults, so that clients can read partition, maxUnavailable, podUpdatePolicy and
	// minReadySeconds without asking. With OnDelete, only defaults are accepted.
	//
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *RollingUpdateStatefulSetStrategy `json:"rollingUpdate,omitempty"`
}

// RollingUpdateStatefulSetStrategy are the parameters of a rolling update.
type RollingUpdateStatefulSetStrategy struct {
	// partition is the number of pods that stay at the old revision: those with
	// the lowest ordinals. Ordinals that are reserved have no pods and do not
	// count. With unorderedUpdate, the last pods in its order stay, of those not
	// updated yet. A number, not a percentage. Defaults to 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	Partition *int32 `json:"partition,omitempty"`

	// maxUnavailable is the number of pods that may be unavailable during the
	// update: a number from 1 (3), or a percentage of replicas from 1% to 100%
	// ("20%"), rounded down but never below 1. Anything but 1 needs
	// podManagementPolicy Parallel. Defaults to 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",messageExpression="'maxUnavailable must be a number from 1, or a percentage from \"1%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// podUpdatePolicy says how a pod gets the new revision.
	//
	//   - ReCreate: it is deleted and created again.
	//   - InPlaceIfPossible: it is changed in place where the change allows it,
	//     else recreated. An event names the field that did not allow it.
	//   - InPlaceOnly: it is changed in place, or left as it is. An event names
	//     the field that did not allow it.
	//
	// Defaults to ReCreate.
	//
	// +optional
	// +kubebuilder:default=ReCreate
	PodUpdatePolicy PodUpdateStrategyType `json:"podUpdatePolicy,omitempty"`

	// paused stops the update, but not scaling or the replacement of lost
	// pods. Defaults to false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// unorderedUpdate replaces the order by ordinal (the highest first) by one
	// of the user's choice. It is the order of updates only: podManagementPolicy
	// says in which order pods are created.
	//
	// +optional
	UnorderedUpdate *UnorderedUpdateStrategy `json:"unorderedUpdate,omitempty"`

	// inPlaceUpdateStrategy are the details of in-place updates.
	//
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`

	// minReadySeconds is how long, in seconds from 0 to 300, a pod must have
	// been ready to count as available. Defaults to 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=300
	MinReadySeconds *int32 `json:"minReadySeconds,omitempty"`
}

// PodUpdateStrategyType says how a pod gets a new revision.
//
// +kubebuilder:validation:Enum=ReCreate;InPlaceIfPossible;InPlaceOnly
type PodUpdateStrategyType string

const (
	// RecreatePodUpdateStrategyType deletes the pod and creates it again.
	RecreatePodUpdateStrategyType PodUpdateStrategyType = "ReCreate"
	// InPlaceIfPossiblePodUpdateStrategyType changes the pod in place where the
	// change allows it, and recreates it otherwise.
	InPlaceIfPossiblePodUpdateStrategyType PodUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyPodUpdateStrategyType changes the pod in place, and leaves it
	// as it is where the change does not allow that.
	InPlaceOnlyPodUpdateStrategyType PodUpdateStrategyType = "InPlaceOnly"
)

// UnorderedUpdateStrategy replaces the order by ordinal.
type UnorderedUpdateStrategy struct {
	// priorityStrategy orders the pods by the labels that they have now, equal
	// ones by ordinal, the highest first. No pod starts its update while a pod
	// of a higher priority can. Pods that cannot become ready, or have not been
	// ready for a minute, do not wait. Absent, pods that are not available go
	// first.
	//
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`
}

// UpdatePriorityStrategy orders pods by their labels, in one of two ways.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.orderPriority) && self.orderPriority.size() > 0 && has(self.weightPriority) && self.weightPriority.size() > 0)",message="priorityStrategy.orderPriority and priorityStrategy.weightPriority exclude each other; found both: keep one"
type UpdatePriorityStrategy struct {
	// orderPriority compares labels, one after the other: by the number at the
	// end of the value, the highest first. A value without one counts as 0; pods
	// without the label go last.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	OrderPriority []UpdatePriorityOrderTerm `json:"orderPriority,omitempty"`

	// weightPriority adds up the weights of all terms whose selector matches
	// the pod. The highest sum goes first.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	WeightPriority []UpdatePriorityWeightTerm `json:"weightPriority,omitempty"`
}

// UpdatePriorityOrderTerm names one label to compare.
type UpdatePriorityOrderTerm struct {
	// orderedKey is the key of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",messageExpression="'orderedKey must be a label key, for example example.io/order; found \"' + self + '\"'"
	OrderedKey string `json:"orderedKey"`
}

// UpdatePriorityWeightTerm gives a weight to the pods that a selector matches.
type UpdatePriorityWeightTerm struct {
	// weight is added to the pod's sum, from 0 to 100.
	//
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int32 `json:"weight"`

	// matchSelector selects the pods that get the weight. It must not be
	// empty.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="matchSelector must not be empty: name at least one label in matchLabels or matchExpressions"
	MatchSelector metav1.LabelSelector `json:"matchSelector,omitzero"`
}
