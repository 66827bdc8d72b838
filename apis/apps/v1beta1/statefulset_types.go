// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// StatefulSet runs pods with a stable name, ordinal and storage, and changes
// them in place where it can.
//
// +kubebuilder:object:root=true
// +kubebuilder:storageversion
// +kubebuilder:resource:path=statefulsets,singular=statefulset,scope=Namespaced,shortName=asts,categories=all
// +kubebuilder:subresource:status
// +kubebuilder:subresource:scale:specpath=.spec.replicas,statuspath=.status.replicas,selectorpath=.status.labelSelector
// +kubebuilder:printcolumn:name="DESIRED",type=integer,JSONPath=`.spec.replicas`,description="Number of pods wanted"
// +kubebuilder:printcolumn:name="CURRENT",type=integer,JSONPath=`.status.replicas`,description="Number of pods that exist"
// +kubebuilder:printcolumn:name="UPDATED",type=integer,JSONPath=`.status.updatedReplicas`,description="Number of pods at the update revision"
// +kubebuilder:printcolumn:name="READY",type=integer,JSONPath=`.status.readyReplicas`,description="Number of ready pods"
// +kubebuilder:printcolumn:name="AGE",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CONTAINERS",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].name`,description="First container of the pod template"
// +kubebuilder:printcolumn:name="IMAGES",type=string,priority=1,JSONPath=`.spec.template.spec.containers[*].image`,description="Image of the first container"
// +kubebuilder:printcolumn:name="BLOCKED",type=string,priority=1,JSONPath=`.status.blockers[0].reason`,description="Why the update waits: reason of the first blocker"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.metadata.name.size() <= 52",optionalOldSelf=true,messageExpression="'metadata.name must be at most 52 characters, because pod and revision names and labels are built from it; found \"' + self.metadata.name + '\"'"
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !self.metadata.name.contains('.')",optionalOldSelf=true,messageExpression="'metadata.name must be a DNS label, without dots, because pod host names are built from it; found \"' + self.metadata.name + '\"'"
type StatefulSet struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard object metadata. The name is limited to 52
	// characters and must be a DNS label.
	//
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state.
	//
	// +required
	Spec StatefulSetSpec `json:"spec,omitzero"`

	// status is the observed state. It is written by the operator.
	//
	// +optional
	// +kubebuilder:default={"observedGeneration":-1,"replicas":0,"readyReplicas":0,"availableReplicas":0,"currentReplicas":0,"updatedReplicas":0}
	Status StatefulSetStatus `json:"status,omitzero"`
}

// StatefulSetList is a list of StatefulSets.
//
// +kubebuilder:object:root=true
type StatefulSetList struct {
	metav1.TypeMeta `json:",inline"`

	// metadata is the standard list metadata.
	//
	// +optional
	metav1.ListMeta `json:"metadata,omitzero"`

	// items are the StatefulSets.
	//
	// +required
	Items []StatefulSet `json:"items"`
}

// StatefulSetSpec is the desired state of a StatefulSet.
//
// +kubebuilder:validation:XValidation:rule="self.podManagementPolicy == 'Parallel' || self.?updateStrategy.rollingUpdate.maxUnavailable.orValue(1) == 1",fieldPath=".updateStrategy.rollingUpdate.maxUnavailable",messageExpression="'updateStrategy.rollingUpdate.maxUnavailable must be 1 with podManagementPolicy OrderedReady; found ' + string(self.updateStrategy.rollingUpdate.maxUnavailable) + ': use podManagementPolicy Parallel for more'"
// +kubebuilder:validation:XValidation:rule="(has(self.serviceName) ? self.serviceName : \"\") == (has(oldSelf.serviceName) ? oldSelf.serviceName : \"\")",fieldPath=".serviceName",messageExpression="'serviceName cannot be changed, because the DNS names of running pods depend on it; it was \"' + (has(oldSelf.serviceName) ? oldSelf.serviceName : \"\") + '\"'"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchLabels) || self.selector.matchLabels.all(k, has(self.template.metadata) && has(self.template.metadata.labels) && k in self.template.metadata.labels && self.template.metadata.labels[k] == self.selector.matchLabels[k])",fieldPath=".template.metadata.labels",message="template.metadata.labels must hold every label of selector.matchLabels with the same value"
// +kubebuilder:validation:XValidation:rule="!has(self.selector.matchExpressions) || self.selector.matchExpressions.all(e, has(self.template.metadata) && has(self.template.metadata.labels) && e.key in self.template.metadata.labels ? e.operator == 'Exists' || has(e.values) && (e.operator == 'In' && self.template.metadata.labels[e.key] in e.values || e.operator == 'NotIn' && !(self.template.metadata.labels[e.key] in e.values)) : e.operator in ['NotIn', 'DoesNotExist'])",fieldPath=".template.metadata.labels",message="template.metadata.labels must match every entry of selector.matchExpressions"
// +kubebuilder:validation:XValidation:rule="!has(self.volumeClaimUpdateStrategy) || self.volumeClaimUpdateStrategy.type != 'OnPodRollingUpdate' || !has(oldSelf.volumeClaimUpdateStrategy) || oldSelf.volumeClaimUpdateStrategy.type != 'OnPodRollingUpdate' || !has(self.volumeClaimTemplates) || !has(oldSelf.volumeClaimTemplates) || self.volumeClaimTemplates.all(t, oldSelf.volumeClaimTemplates.all(o, o.metadata.name != t.metadata.name || (!has(o.spec.storageClassName) || !has(t.spec.storageClassName) || o.spec.storageClassName == t.spec.storageClassName) && (has(o.spec.volumeMode) && o.spec.volumeMode == 'Block') == (has(t.spec.volumeMode) && t.spec.volumeMode == 'Block') && o.spec.accessModes.all(m, m in t.spec.accessModes) && t.spec.accessModes.all(m, m in o.spec.accessModes)))",fieldPath=".volumeClaimTemplates",message="storageClassName, volumeMode and accessModes of a claim template cannot change with volumeClaimUpdateStrategy OnPodRollingUpdate, because no claim can follow: set the type to Recreate, to have them recreated, or to OnDelete, or give the template another name"
type StatefulSetSpec struct {
	// replicas is the number of pods. Ordinals that are reserved are skipped,
	// not subtracted. Defaults to 1.
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
	// +kubebuilder:validation:XValidation:rule="!has(self.spec.activeDeadlineSeconds)",fieldPath=".spec.activeDeadlineSeconds",message="template.spec.activeDeadlineSeconds must be absent, because pods of a StatefulSet run for ever"
	Template corev1.PodTemplateSpec `json:"template,omitzero"`

	// volumeClaimTemplates are the claims that each pod gets, named
	// <template>-<set>-<ordinal>. Each needs a unique metadata.name, an access
	// mode and a storage request. A claim takes the place of a volume of the
	// same name in the pod template.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(t, self.exists_one(o, o.metadata.name == t.metadata.name))",message="the metadata.name of every entry of volumeClaimTemplates must be unique"
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// volumeClaimUpdateStrategy says what happens to existing claims when
	// volumeClaimTemplates change.
	//
	// +optional
	VolumeClaimUpdateStrategy VolumeClaimUpdateStrategy `json:"volumeClaimUpdateStrategy,omitzero"`

	// serviceName is the headless Service that gives the pods their DNS names,
	// <pod>.<serviceName>.<namespace>.svc. It becomes the pods' subdomain and
	// cannot be changed. Absent, the pods have no DNS names of their own.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == \"\" || !format.dns1123Label().validate(self).hasValue()",messageExpression="'serviceName must be the name of a Service (a DNS label: lower case letters, digits and -); found \"' + self + '\"'"
	ServiceName string `json:"serviceName,omitempty"`

	// podManagementPolicy is the order in which pods are created and deleted.
	//
	//   - OrderedReady: one at a time, in the order of the ordinals, each after
	//     the one before it is ready.
	//   - Parallel: all at once. Also what allows more than one pod to be
	//     unavailable during an update.
	//
	// Defaults to OrderedReady. It cannot be changed.
	//
	// +optional
	// +kubebuilder:default=OrderedReady
	// +kubebuilder:validation:Enum=OrderedReady;Parallel
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",messageExpression="'podManagementPolicy cannot be changed; it was ' + oldSelf + ', found ' + self"
	PodManagementPolicy appsv1.PodManagementPolicyType `json:"podManagementPolicy,omitempty"`

	// updateStrategy says how a new revision reaches the pods.
	//
	// +optional
	// +kubebuilder:default={"type":"RollingUpdate","rollingUpdate":{}}
	UpdateStrategy StatefulSetUpdateStrategy `json:"updateStrategy,omitzero"`

	// revisionHistoryLimit is the number of unused revisions kept for a
	// rollback. Defaults to 10.
	//
	// +optional
	// +kubebuilder:default=10
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int32 `json:"revisionHistoryLimit,omitempty"`

	// reserveOrdinals are ordinals that no pod may have: a number (3), or a
	// range with both ends included ("3-5"). A pod that has a reserved ordinal
	// is deleted and the set goes on to a higher one: with replicas 3 and 1
	// reserved, the pods are 0, 2 and 3.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1000
	// +kubebuilder:validation:items:XIntOrString
	// +kubebuilder:validation:items:MaxLength=19
	// +kubebuilder:validation:items:XValidation:rule="type(self) == int ? self >= 0 : self.matches('^[0-9]{1,9}(-[0-9]{1,9})?$') && int(self.split('-')[0]) <= int(self.split('-')[self.split('-').size() - 1])",messageExpression="'reserveOrdinals must hold ordinals from 0 (3) or ranges from the lower to the higher (\"3-5\"); found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	ReserveOrdinals []intstr.IntOrString `json:"reserveOrdinals,omitempty"`

	// lifecycle holds pods at defined points until another client releases
	// them. Absent, pods get no lifecycle labels.
	//
	// +optional
	Lifecycle *Lifecycle `json:"lifecycle,omitempty"`

	// scaleStrategy limits the speed of scaling.
	//
	// +optional
	ScaleStrategy *StatefulSetScaleStrategy `json:"scaleStrategy,omitempty"`

	// persistentVolumeClaimRetentionPolicy says what happens to claims when
	// the set is deleted or scaled down. Absent, all claims are kept.
	//
	// +optional
	PersistentVolumeClaimRetentionPolicy *StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy,omitempty"`

	// ordinals sets the range of the ordinals.
	//
	// +optional
	Ordinals *StatefulSetOrdinals `json:"ordinals,omitempty"`
}

// StatefulSetScaleStrategy limits the speed of scaling.
type StatefulSetScaleStrategy struct {
	// maxUnavailable is the number of pods that may start at a time, and that
	// may be unavailable while pods are deleted: a number from 1 (3), or a
	// percentage of replicas from 1% to 100% ("20%"), rounded down but never
	// below 1. It has an effect with podManagementPolicy Parallel only. Pods that
	// are ending, and those that cannot become ready by waiting, such as in a
	// crash loop, count for deletions only; those whose deletion is overdue do
	// not count. While pods are missing for it, no pod that serves is deleted for
	// an update. Absent, scaling is not limited.
	//
	// +optional
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 : self.matches('^([1-9][0-9]?|100)%$')",messageExpression="'scaleStrategy.maxUnavailable must be a number from 1, or a percentage from \"1%\" to \"100%\"; found ' + (type(self) == int ? string(self) : '\"' + self + '\"')"
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
}

// PersistentVolumeClaimRetentionPolicyType says whether claims outlive the
// pods that used them.
//
// +kubebuilder:validation:Enum=Retain;Delete
type PersistentVolumeClaimRetentionPolicyType string

const (
	// RetainPersistentVolumeClaimRetentionPolicyType keeps the claims.
	RetainPersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Retain"
	// DeletePersistentVolumeClaimRetentionPolicyType deletes the claims, and
	// with them, by the reclaim policy of their volumes, usually the data.
	DeletePersistentVolumeClaimRetentionPolicyType PersistentVolumeClaimRetentionPolicyType = "Delete"
)

// StatefulSetPersistentVolumeClaimRetentionPolicy says what happens to the
// claims made from volumeClaimTemplates.
type StatefulSetPersistentVolumeClaimRetentionPolicy struct {
	// whenDeleted applies when the set is deleted.
	//
	//   - Retain: its claims are kept.
	//   - Delete: its claims are deleted; those of pods that were removed before
	//     this was set are kept.
	//
	// Defaults to Retain.
	//
	// +optional
	// +kubebuilder:default=Retain
	WhenDeleted PersistentVolumeClaimRetentionPolicyType `json:"whenDeleted,omitempty"`

	// whenScaled applies to the claims of pods that a scale-down or
	// reserveOrdinals removes.
	//
	//   - Retain: they are kept, and used again after a scale-up.
	//   - Delete: they are deleted with their pods.
	//
	// Defaults to Retain.
	//
	// +optional
	// +kubebuilder:default=Retain
	WhenScaled PersistentVolumeClaimRetentionPolicyType `json:"whenScaled,omitempty"`
}

// StatefulSetOrdinals sets the range of the ordinals.
type StatefulSetOrdinals struct {
	// start is the first ordinal. Defaults to 0.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	Start int32 `json:"start,omitempty"`
}
