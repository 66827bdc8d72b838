// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CloneSetUpdateStrategy says how a new revision reaches the pods. It can be
// written in two ways, both accepted in both versions:
//
//   - nested, as in v1beta1: type is RollingUpdate or OnDelete, everything else
//     is in rollingUpdate;
//   - flat, as in v1alpha1: type is ReCreate, InPlaceIfPossible, InPlaceOnly or
//     OnDelete, everything else is beside it.
//
// GetUpdateStrategyType and GetRollingUpdate read both:
//
//	who updates the pods  a user who deletes them, if type is OnDelete; else
//	                      the operator
//	podUpdatePolicy       type, if it is ReCreate, InPlaceIfPossible or
//	                      InPlaceOnly; else rollingUpdate.podUpdatePolicy; else
//	                      ReCreate
//	any other field       the place where it is written
//
// The API server fills in the defaults of partition, maxUnavailable and maxSurge in
// both places, so that clients of either version can read them without asking. So a
// place that holds the default counts as one where nothing is written.
//
// A number, a percentage or paused may be written in both places if they say
// the same; anything else in one place only. More is refused. Should an object
// hold more all the same, the place counts that type names: beside type for
// ReCreate, InPlaceIfPossible and InPlaceOnly, rollingUpdate otherwise. An
// update that is paused in one of the places is paused.
//
// +kubebuilder:validation:XValidation:rule="!(self.?type.orValue(\"\") in ['ReCreate', 'InPlaceIfPossible', 'InPlaceOnly']) || self.?rollingUpdate.podUpdatePolicy.orValue(self.type) == self.type",fieldPath=".rollingUpdate.podUpdatePolicy",messageExpression="'updateStrategy.type ' + self.type + ' and updateStrategy.rollingUpdate.podUpdatePolicy ' + self.rollingUpdate.podUpdatePolicy + ' disagree: keep podUpdatePolicy and use type RollingUpdate, or remove it'"
// +kubebuilder:validation:XValidation:rule="self.?partition.orValue(dyn(0)) == dyn(0) || self.?rollingUpdate.partition.orValue(dyn(0)) in [dyn(0), self.partition]",fieldPath=".partition",messageExpression="'updateStrategy.partition ' + string(self.partition) + ' and updateStrategy.rollingUpdate.partition ' + string(self.rollingUpdate.partition) + ' disagree: keep one'"
// +kubebuilder:validation:XValidation:rule="self.?maxUnavailable.orValue(dyn('20%')) == dyn('20%') || self.?rollingUpdate.maxUnavailable.orValue(dyn('20%')) in [dyn('20%'), self.maxUnavailable]",fieldPath=".maxUnavailable",messageExpression="'updateStrategy.maxUnavailable ' + string(self.maxUnavailable) + ' and updateStrategy.rollingUpdate.maxUnavailable ' + string(self.rollingUpdate.maxUnavailable) + ' disagree: keep one'"
// +kubebuilder:validation:XValidation:rule="self.?maxSurge.orValue(dyn(0)) == dyn(0) || self.?rollingUpdate.maxSurge.orValue(dyn(0)) in [dyn(0), self.maxSurge]",fieldPath=".maxSurge",messageExpression="'updateStrategy.maxSurge ' + string(self.maxSurge) + ' and updateStrategy.rollingUpdate.maxSurge ' + string(self.rollingUpdate.maxSurge) + ' disagree: keep one'"
// +kubebuilder:validation:XValidation:rule="!has(self.paused) || self.?rollingUpdate.paused.orValue(self.paused) == self.paused",fieldPath=".paused",message="updateStrategy.paused and updateStrategy.rollingUpdate.paused disagree: keep one"
// +kubebuilder:validation:XValidation:rule="!has(self.priorityStrategy) || !self.?rollingUpdate.priorityStrategy.hasValue()",fieldPath=".priorityStrategy",message="priorityStrategy is written in updateStrategy and in updateStrategy.rollingUpdate: keep one"
// +kubebuilder:validation:XValidation:rule="!has(self.scatterStrategy) || !self.?rollingUpdate.scatterStrategy.hasValue()",fieldPath=".scatterStrategy",message="scatterStrategy is written in updateStrategy and in updateStrategy.rollingUpdate: keep one"
// +kubebuilder:validation:XValidation:rule="!has(self.inPlaceUpdateStrategy) || !self.?rollingUpdate.inPlaceUpdateStrategy.hasValue()",fieldPath=".inPlaceUpdateStrategy",message="inPlaceUpdateStrategy is written in updateStrategy and in updateStrategy.rollingUpdate: keep one"
// +kubebuilder:validation:XValidation:rule="!([self.?rollingUpdate.maxUnavailable.orValue(dyn('20%')), self.?maxUnavailable.orValue(dyn('20%'))].exists(v, v in [dyn(0), dyn('0%')]) && [self.?rollingUpdate.maxSurge.orValue(dyn(0)), self.?maxSurge.orValue(dyn(0))].all(v, v in [dyn(0), dyn('0%')]))",message="maxUnavailable and maxSurge must not both be 0, because then no pod could be updated"
// +kubebuilder:validation:XValidation:rule="!('InPlaceOnly' in [self.?type.orValue(\"\"), self.?rollingUpdate.podUpdatePolicy.orValue(\"\")]) || [self.?rollingUpdate.maxSurge.orValue(dyn(0)), self.?maxSurge.orValue(dyn(0))].all(v, v in [dyn(0), dyn('0%')])",message="maxSurge must be 0 or absent with InPlaceOnly, because no pod is created to take the place of another"
type CloneSetUpdateStrategy struct {
	// type is the strategy.
	//
	//   - RollingUpdate: the operator updates the pods, within the budget, in
	//     the way that rollingUpdate.podUpdatePolicy says.
	//   - OnDelete: a pod gets the new revision when a user deletes it.
	//   - ReCreate: RollingUpdate with podUpdatePolicy ReCreate.
	//   - InPlaceIfPossible: RollingUpdate with podUpdatePolicy
	//     InPlaceIfPossible.
	//   - InPlaceOnly: RollingUpdate with podUpdatePolicy InPlaceOnly.
	//
	// Defaults to RollingUpdate.
	//
	// +optional
	// +kubebuilder:default=RollingUpdate
	Type CloneSetUpdateStrategyType `json:"type,omitempty"`

	// rollingUpdate are the parameters of the update. Those beside it mean the
	// same: each is written in one of the places.
	//
	// +optional
	// +kubebuilder:default={}
	RollingUpdate *RollingUpdateCloneSetStrategy `json:"rollingUpdate,omitempty"`

	CloneSetUpdateParameters `json:",inline"`
}

// CloneSetUpdateStrategyType says who updates the pods, and in the words of
// v1alpha1 how.
//
// +kubebuilder:validation:Enum=RollingUpdate;OnDelete;ReCreate;InPlaceIfPossible;InPlaceOnly
type CloneSetUpdateStrategyType string

const (
	// RollingUpdateCloneSetUpdateStrategyType lets the operator update the pods.
	RollingUpdateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "RollingUpdate"
	// OnDeleteCloneSetUpdateStrategyType updates a pod when a user deletes it.
	OnDeleteCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "OnDelete"
	// RecreateCloneSetUpdateStrategyType is RollingUpdate with podUpdatePolicy
	// ReCreate.
	RecreateCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "ReCreate"
	// InPlaceIfPossibleCloneSetUpdateStrategyType is RollingUpdate with
	// podUpdatePolicy InPlaceIfPossible.
	InPlaceIfPossibleCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceIfPossible"
	// InPlaceOnlyCloneSetUpdateStrategyType is RollingUpdate with podUpdatePolicy
	// InPlaceOnly.
	InPlaceOnlyCloneSetUpdateStrategyType CloneSetUpdateStrategyType = "InPlaceOnly"
)

// RollingUpdateCloneSetStrategy are the parameters of a rolling update.
type RollingUpdateCloneSetStrategy struct {
	// podUpdatePolicy says how a pod gets the new revision.
	//
	//   - ReCreate: it is deleted and another is created.
	//   - InPlaceIfPossible: it is changed in place where the change allows it,
	//     else recreated. An event names the field that did not allow it.
	//   - InPlaceOnly: it is changed in place, or left as it is. An event names
	//     the field that did not allow it.
	//
	// Defaults to ReCreate.
	//
	// +optional
	PodUpdatePolicy PodUpdateStrategyType `json:"podUpdatePolicy,omitempty"`

	CloneSetUpdateParameters `json:",inline"`
}

// CloneSetUpdateParameters are the parameters that both ways to write an update
// strategy have.
type CloneSetUpdateParameters struct {
	// partition is the number of pods that stay at the old revision: a number
	// from 0 (3), or a percentage of replicas from 0% to 100% ("20%"), rounded
	// up. Below 100% at least one pod is updated. Defaults to 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]|[1-9][0-9]|100)%$')",messageExpression="'partition must be a number from 0, or a percentage from \"0%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	Partition *intstr.IntOrString `json:"partition,omitempty"`

	// maxUnavailable is the number of pods that may be unavailable during the
	// update: a number from 0 (3), or a percentage of replicas from 0% to 100%
	// ("20%"), rounded up if no pod is created in addition, else down. If this
	// and maxSurge come to 0, it counts as 1. Defaults to 20%.
	//
	// +optional
	// +kubebuilder:default="20%"
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^([0-9]|[1-9][0-9]|100)%$')",messageExpression="'maxUnavailable must be a number from 0, or a percentage from \"0%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// maxSurge is the number of pods that may exist beyond replicas during the
	// update: a number from 0 (3), or a percentage of replicas from 0% to 999%
	// ("20%"), rounded up. While the update is paused none are created. With
	// InPlaceOnly it must be 0. Defaults to 0.
	//
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^(0|[1-9][0-9]{0,2})%$')",messageExpression="'maxSurge must be a number from 0, or a percentage from \"0%\" to \"999%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`

	// paused stops the update, but not scaling or the replacement of lost
	// pods. Defaults to false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// priorityStrategy orders the pods by their labels. No pod starts its update
	// while a pod of a higher priority can. Pods that have not been ready for
	// a minute do not wait. Absent, those that are not ready go first.
	//
	// +optional
	PriorityStrategy *UpdatePriorityStrategy `json:"priorityStrategy,omitempty"`

	// scatterStrategy spreads the pods that have a label over the whole update,
	// so that they are not updated one after the other. Each pair of key and
	// value may be there once.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.key == t.key && o.value == t.value))",message="scatterStrategy must not hold the same key and value twice"
	ScatterStrategy []CloneSetUpdateScatterTerm `json:"scatterStrategy,omitempty"`

	// inPlaceUpdateStrategy are the details of in-place updates.
	//
	// +optional
	InPlaceUpdateStrategy *InPlaceUpdateStrategy `json:"inPlaceUpdateStrategy,omitempty"`
}

// CloneSetUpdateScatterTerm names the pods that are spread over an update.
type CloneSetUpdateScatterTerm struct {
	// key is the key of the label.
	//
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=317
	Key string `json:"key"`

	// value is the value of the label.
	//
	// +required
	// +kubebuilder:validation:MaxLength=63
	Value string `json:"value"`
}
