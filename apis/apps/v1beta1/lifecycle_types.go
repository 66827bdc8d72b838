// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Lifecycle holds pods at defined points until another client releases them.
type Lifecycle struct {
	// preDelete holds a pod that has one of its labels or finalizers before the
	// operator deletes it: by a scale-down, to be recreated, or by the label
	// apps.kruise.io/specified-delete. Its state is PreparingDelete. A pod that
	// another client deletes is not held. One that is wanted again goes back to
	// Normal, unless it was marked not ready.
	//
	// +optional
	PreDelete *LifecycleHook `json:"preDelete,omitempty"`

	// inPlaceUpdate holds a pod that has one of its labels or finalizers before it
	// is changed in place: its state is PreparingUpdate, and the annotation
	// insitu.dev/pending-update says what will change. After the update the pod
	// is Updated, and does not count as available, until it has all of them
	// again.
	//
	// +optional
	InPlaceUpdate *LifecycleHook `json:"inPlaceUpdate,omitempty"`

	// preNormal keeps a new pod in the state PreparingNormal, where it does not
	// count as available, until it has all labels and finalizers of the hook.
	//
	// +optional
	PreNormal *LifecycleHook `json:"preNormal,omitempty"`
}

// OrNil returns the lifecycle, or nil if it defines no hook.
func (l *Lifecycle) OrNil() *Lifecycle {
	if l == nil || l.PreDelete == nil && l.InPlaceUpdate == nil && l.PreNormal == nil {
		return nil
	}

	return l
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

	// markPodNotReady takes a pod out of service while it is held, and while it
	// is changed in place, by the condition KruisePodReady. Pods get the readiness
	// gate for it when they are created. It has no effect in preNormal. Defaults
	// to false.
	//
	// +optional
	MarkPodNotReady bool `json:"markPodNotReady,omitempty"`
}

// LifecycleStateType is the value of LifecycleStateKey: where a pod is between
// its hooks.
type LifecycleStateType string

const (
	// LifecycleStatePreparingNormal is a new pod held by preNormal, or one of a CloneSet that has
	// no node yet.
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
