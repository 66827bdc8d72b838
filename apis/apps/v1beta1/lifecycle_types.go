// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Lifecycle holds pods at defined points until somebody else lets them go.
type Lifecycle struct {
	// preDelete holds a pod before it is deleted by a scale-down or an update.
	//
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`

	// inPlaceUpdate holds a pod before and after it is changed in place.
	//
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`

	// preNormal holds a new pod before it counts as available.
	//
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// LifecycleHook says what marks a pod as held. preDelete and inPlaceUpdate hold
// a pod that has any of the labels or finalizers; preNormal holds it until it
// has all of them.
type LifecycleHook struct {
	// labelsHandler are the labels that mark a pod as held.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=10
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() > 0 && k.size() <= 317 && !k.matches(r'[^\\w./-]'))",message="labelsHandler must hold label keys, for example example.io/hold"
	LabelsHandler map[string]string `json:"labelsHandler,omitempty"`

	// finalizersHandler are the finalizers that mark a pod as held, each a
	// qualified name with a domain, for example example.io/drain.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=317
	// +kubebuilder:validation:items:XValidation:rule="self.contains('/') && !format.qualifiedName().validate(self).hasValue()",messageExpression="'finalizersHandler must hold qualified names with a domain, for example example.io/drain; found \"' + self + '\"'"
	FinalizersHandler []string `json:"finalizersHandler,omitempty"`

	// markPodNotReady takes a held pod out of service until it is let go. It
	// has no effect in preNormal. Defaults to false.
	//
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}

// LifecycleStateType is the value of LifecycleStateKey: where a pod is between
// its hooks.
type LifecycleStateType string

const (
	// LifecycleStatePreparingNormal is a new pod held by preNormal.
	LifecycleStatePreparingNormal LifecycleStateType = "PreparingNormal"
	// LifecycleStateNormal is a pod that may take traffic and may be updated.
	LifecycleStateNormal LifecycleStateType = "Normal"
	// LifecycleStatePreparingUpdate is a pod held before its update.
	LifecycleStatePreparingUpdate LifecycleStateType = "PreparingUpdate"
	// LifecycleStateUpdating is a pod that is being changed in place.
	LifecycleStateUpdating LifecycleStateType = "Updating"
	// LifecycleStateUpdated is a pod held after its update.
	LifecycleStateUpdated LifecycleStateType = "Updated"
	// LifecycleStatePreparingDelete is a pod held before its deletion.
	LifecycleStatePreparingDelete LifecycleStateType = "PreparingDelete"
)
