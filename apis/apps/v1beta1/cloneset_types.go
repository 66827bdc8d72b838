// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// CloneSet runs pods that are alike, and changes them in place where it can.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=clonesets,singular=cloneset,scope=Namespaced,shortName=clone,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="Number of pods wanted"
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedReplicas`,description="Number of pods at the update revision"
// +kubebuilder:printcolumn:name="UPDATED_READY",type=integer,JSONPath=`.status.updatedReadyReplicas`,description="Number of ready pods at the update revision"
// +kubebuilder:printcolumn:name="UPDATED_AVAILABLE",type=integer,JSONPath=`.status.updatedAvailableReplicas`,description="Number of available pods at the update revision"
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ready pods"
// +kubebuilder:printcolumn:name="TOTAL",type=integer,JSONPath=`.status.replicas`,description="Number of pods that exist"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CONTAINERS",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].name`,description="First container of the pod template"
// +kubebuilder:printcolumn:name="IMAGES",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="Image of the first container"
// +kubebuilder:printcolumn:name="SELECTOR",type=string,priority=1,JSONPath=`.status.labelSelector`,description="Selector of the pods"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 52",optionalOldSelf=true,messageExpression="'metadata.name must be at most 52 characters, because pod and revision names and labels are built from it; found \"' + self.metadata.name + '\"'"
type CloneSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is limited to 52
	// characters.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec CloneSetSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1,"replicas":0,"readyReplicas":0,"availableReplicas":0,"updatedReplicas":0,"updatedReadyReplicas":0}
	Status CloneSetStatus `json:"status,omitzero"`
}

// CloneSetList is a list of CloneSets.
//
// +kubebuilder:object:root=true
type CloneSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the CloneSets.
	//
	// +required
	Items []CloneSet `json:"items"`
}

// CloneSetSpec is the desired state of a CloneSet.
//
// +kubebuilder:validation:XValidation:rule="!has(self.progressDeadlineSeconds) || self.progressDeadlineSeconds == 2147483647 || self.progressDeadlineSeconds > (has(self.minReadySeconds) ? self.minReadySeconds : 0)",fieldPath=".progressDeadlineSeconds",message="progressDeadlineSeconds must be greater than minReadySeconds, or no pod could be available in time"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, has(self.template.metadata) && has(self.template.metadata.labels) && k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",fieldPath=".template.metadata.labels",message="template.metadata.labels must hold every label of selector.matchLabels with the same value"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, has(self.template.metadata) && has(self.template.metadata.labels) && e.key in self.template.metadata.labels ? e.operator == 'Exists' || has(e.values) && (e.operator == 'In' && self.template.metadata.labels[e.key] in e.values || e.operator == 'NotIn' && !(self.template.metadata.labels[e.key] in e.values)) : e.operator in ['NotIn', 'DoesNotExist'])",fieldPath=".template.metadata.labels",message="template.metadata.labels must match every entry of selector.matchExpressions"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimUpdateStrategy) || self.volumeClaimUpdateStrategy.type != 'OnPodRollingUpdate' || !has(oldSelf.volumeClaimUpdateStrategy) || oldSelf.volumeClaimUpdateStrategy.type != 'OnPodRollingUpdate' || !has(self.volumeClaimTemplates) || !has(oldSelf.volumeClaimTemplates) || self.volumeClaimTemplates.all(t, oldSelf.volumeClaimTemplates.all(o, o.metadata.name != t.metadata.name || (!has(o.spec.storageClassName) || !has(t.spec.storageClassName) || o.spec.storageClassName == t.spec.storageClassName) && (has(o.spec.volumeMode) && o.spec.volumeMode == 'Block') == (has(t.spec.volumeMode) && t.spec.volumeMode == 'Block') && o.spec.accessModes.all(m, m in t.spec.accessModes) && t.spec.accessModes.all(m, m in o.spec.accessModes)))",fieldPath=".volumeClaimTemplates",message="storageClassName, volumeMode and accessModes of a claim template cannot change with volumeClaimUpdateStrategy OnPodRollingUpdate, because no claim can follow: give the template another name, or set the type to OnDelete"
type CloneSetSpec struct {
	// replicas is the number of pods. Defaults to 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	Replicas *int32 `json:"replicas,omitempty"`

	// selector selects the pods of the set. It must not be empty, must match
	// the labels of the template and cannot be changed.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="has(self.matchLabels) && self.matchLabels.size() > 0 || has(self.matchExpressions) && self.matchExpressions.size() > 0",message="selector must not be empty: name at least one label in matchLabels or matchExpressions"
	// +kubebuilder:validation:XValidation:rule="(has(self.matchLabels) && self.matchLabels.size() > 0 ? has(oldSelf.matchLabels) && self.matchLabels == oldSelf.matchLabels : !has(oldSelf.matchLabels) || oldSelf.matchLabels.size() == 0) && (has(self.matchExpressions) && self.matchExpressions.size() > 0 ? has(oldSelf.matchExpressions) && self.matchExpressions == oldSelf.matchExpressions : !has(oldSelf.matchExpressions) || oldSelf.matchExpressions.size() == 0)",message="selector cannot be changed, because running pods are found by it"
	Selector *metav1.LabelSelector `json:"selector,omitempty"`

	// template describes the pods. A change of it makes a new revision.
	// restartPolicy must be Always or absent, activeDeadlineSeconds absent.
	// If podUpdatePolicy is in place, new pods have the readiness gate
	// InPlaceUpdateReady, listed or not. Fields that this release does not
	// know are refused under strict field validation, the default of
	// kubectl, and named in a warning otherwise.
	//
	// +required
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.restartPolicy) || self.spec.restartPolicy == 'Always'",fieldPath=".spec.restartPolicy",messageExpression="'template.spec.restartPolicy must be Always or absent; found ' + self.spec.restartPolicy"
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.activeDeadlineSeconds)",fieldPath=".spec.activeDeadlineSeconds",message="template.spec.activeDeadlineSeconds must be absent, because pods of a CloneSet run for ever"
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// volumeClaimTemplates are the claims that each pod gets, named
	// <template>-<set>-<instance ID of the pod>. Each needs a unique
	// metadata.name, an access mode and a storage request. A claim takes the
	// place of a volume of the same name in the pod template. Claims are
	// deleted with their pods, unless they are reused. A change makes no
	// revision and concerns new claims only, unless volumeClaimUpdateStrategy
	// says otherwise.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.metadata.name == t.metadata.name))",message="the metadata.name of every entry of volumeClaimTemplates must be unique"
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// volumeClaimUpdateStrategy says what happens to existing claims when
	// volumeClaimTemplates change. With type OnPodRollingUpdate, the templates
	// are part of the revision. Type Recreate is not accepted.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.type) || self.type != 'Recreate'",fieldPath=".type",message="volumeClaimUpdateStrategy.type Recreate is not accepted for a CloneSet: use OnDelete or OnPodRollingUpdate"
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitzero"`

	// scaleStrategy says how pods are created and deleted when replicas
	// changes.
	//
	// +optional
	ScaleStrategy CloneSetScaleStrategy `json:"scaleStrategy,omitzero"`

	// updateStrategy says how a new revision reaches the pods.
	//
	// +optional
	// +kubebuilder:default={}
	UpdateStrategy CloneSetUpdateStrategy `json:"updateStrategy,omitzero"`

	// revisionHistoryLimit is the number of unused revisions kept for a
	// rollback. Defaults to 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// minReadySeconds is how long, in seconds, a pod must have been ready to
	// count as available. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	MinReadySeconds int32 `json:"minReadySeconds,omitempty"`

	// lifecycle holds pods at defined points until another client releases
	// them.
	//
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// progressDeadlineSeconds is the time, in seconds, after which an update
	// that does not end is reported in the condition Progressing. Nothing is
	// undone. It must be greater than minReadySeconds. Defaults to
	// 2147483647: no deadline.
	//
	// +optional
	ProgressDeadlineSeconds *int32 `json:"progressDeadlineSeconds,omitempty"`
}

// CloneSetScaleStrategy says how pods are created and deleted.
//
// +kubebuilder:validation:XValidation:rule="!has(self.enablePVCReuse) || !has(self.disablePVCReuse) || self.enablePVCReuse != self.disablePVCReuse",fieldPath=".disablePVCReuse",messageExpression="'scaleStrategy.enablePVCReuse and scaleStrategy.disablePVCReuse contradict each other; found both ' + (self.enablePVCReuse ? 'true' : 'false') + ': keep one'"
type CloneSetScaleStrategy struct {
	// podsToDelete names pods to delete. They are the first to go when replicas
	// goes down; if it does not, others are created in their place, within
	// maxUnavailable of updateStrategy. Names of pods that the set does not have
	// are without effect.
	//
	// +optional
	// +listType=set
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	PodsToDelete []string `json:"podsToDelete,omitempty"`

	// maxUnavailable is the number of pods that may start at a time: a number
	// from 1 (3), or a percentage of replicas from 1% to 100% ("20%"), rounded
	// up. Deletions for an update wait for missing pods. Absent, scaling is not
	// limited.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",messageExpression="'scaleStrategy.maxUnavailable must be a number from 1, or a percentage from \"1%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`

	// enablePVCReuse keeps the claims of a deleted pod for the next pod that is
	// created. Absent, what disablePVCReuse says counts; without either, claims
	// are kept.
	//
	// +optional
	EnablePVCReuse *bool `json:"enablePVCReuse,omitempty"`

	// disablePVCReuse is the opposite of enablePVCReuse, in the words of
	// v1alpha1. Absent, what enablePVCReuse says counts.
	//
	// +optional
	DisablePVCReuse *bool `json:"disablePVCReuse,omitempty"`

	// excludePreparingDelete leaves pods that a preDelete hook holds out of
	// replicas: others are created in their place at once. The label
	// apps.kruise.io/cloneset-scaling-exclude-preparing-delete with the value
	// true on the set does the same. Defaults to false.
	//
	// +optional
	ExcludePreparingDelete bool `json:"excludePreparingDelete,omitempty"`
}
