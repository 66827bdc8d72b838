// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// cloneSet is the CloneSet of Insitu.
func cloneSet() Kind {
	return Kind{
		GroupVersionKind: appsv1beta1.GroupVersion.WithKind("CloneSet"),
		resource:         "clonesets", names: []string{"cloneset", "clone"},
		New:            func() client.Object { return &appsv1beta1.CloneSet{} },
		NewList:        func() client.ObjectList { return &appsv1beta1.CloneSetList{} },
		NamesRevisions: true,
		read: func(object client.Object) (View, bool) {
			set, ok := object.(*appsv1beta1.CloneSet)
			if !ok {
				return View{}, false
			}
			return viewCloneSet(set), true
		},
	}
}

func viewCloneSet(set *appsv1beta1.CloneSet) View {
	status := set.Status
	v := View{
		Template: &set.Spec.Template, ClaimTemplates: set.Spec.VolumeClaimTemplates, Selector: set.Spec.Selector,
		Policy: string(set.GetPodUpdatePolicy()), Parameters: parametersOfClones(set),
		Partition: Partition{
			Paths: pathsOfClonePartition(set), TakesPercentages: true,
			Value: ptr.Deref(set.GetRollingUpdate().Partition, intstr.FromInt32(0)), Pods: set.GetPartition(),
			Keeps: func(value intstr.IntOrString) int { return keptClones(set, value) },
		},
		Paused:   set.IsPaused(),
		OnDelete: set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType,
		Replicas: set.GetReplicas(), Updated: status.UpdatedReplicas, Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		InPlace: status.InPlaceUpdated, Recreated: status.Recreated, MaxUnavailable: set.GetMaxUnavailable(),
		ObservedGeneration: status.ObservedGeneration, UpdateRevision: status.UpdateRevision, CurrentRevision: status.CurrentRevision,
		Conditions: conditionsOfClones(status.Conditions), Blockers: status.Blockers,
		IgnoresClaims: !set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates(),
		Inspect: func(ctx context.Context, eyes workload.Eyes) workload.Inspection {
			return cloneset.Inspect(ctx, eyes, set)
		},
		Resume: func() bool { return resumeCloneSet(set) },
	}
	if v.OnDelete {
		v.NotRolling = whenDeleted
	}
	return v
}

func conditionsOfClones(conditions []appsv1beta1.CloneSetCondition) []metav1.Condition {
	found := make([]metav1.Condition, 0, len(conditions))
	for _, c := range conditions {
		found = append(found, metav1.Condition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message, LastTransitionTime: c.LastTransitionTime,
		})
	}
	return found
}

func resumeCloneSet(set *appsv1beta1.CloneSet) bool {
	if !set.IsPaused() {
		return false
	}
	set.Spec.UpdateStrategy.Paused = false
	if set.Spec.UpdateStrategy.RollingUpdate != nil {
		set.Spec.UpdateStrategy.RollingUpdate.Paused = false
	}
	return true
}

// flatParameters returns the path of spec.updateStrategy, which holds the parameters of a
// CloneSet that is written as in v1alpha1.
func flatParameters() []string {
	return []string{"spec", "updateStrategy"}
}

// parametersOfClones returns both places that a CloneSet has for a parameter, the one that
// the user has chosen first.
func parametersOfClones(set *appsv1beta1.CloneSet) [][]string {
	if isNested(set.Spec.UpdateStrategy) {
		return [][]string{nestedParameters(), flatParameters()}
	}
	return [][]string{flatParameters(), nestedParameters()}
}

// isNested reports whether the user has chosen to write parameters in rollingUpdate.
func isNested(strategy appsv1beta1.CloneSetUpdateStrategy) bool {
	switch strategy.Type {
	case appsv1beta1.RollingUpdateCloneSetUpdateStrategyType:
		return true
	case "", appsv1beta1.OnDeleteCloneSetUpdateStrategyType:
		return strategy.RollingUpdate != nil || equality.Semantic.DeepEqual(strategy.CloneSetUpdateParameters, appsv1beta1.CloneSetUpdateParameters{})
	default:
		return false
	}
}

// pathsOfClonePartition returns the fields that hold the partition of a CloneSet. A field
// that holds 0 is one that the API server has filled in, unless both do.
func pathsOfClonePartition(set *appsv1beta1.CloneSet) [][]string {
	isWritten := func(value *intstr.IntOrString) bool {
		return value != nil && value.String() != "0" && value.String() != "0%"
	}
	isFlat := isWritten(set.Spec.UpdateStrategy.Partition)
	nested := ptr.Deref(set.Spec.UpdateStrategy.RollingUpdate, appsv1beta1.RollingUpdateCloneSetStrategy{})
	switch {
	case isFlat && isWritten(nested.Partition):
		return [][]string{partitionIn(flatParameters()), partitionIn(nestedParameters())}
	case isFlat:
		return [][]string{partitionIn(flatParameters())}
	case isWritten(nested.Partition):
		return [][]string{partitionIn(nestedParameters())}
	default:
		return [][]string{partitionIn(parametersOfClones(set)[0])}
	}
}

// keptClones returns how many pods a partition of a CloneSet keeps.
func keptClones(set *appsv1beta1.CloneSet, value intstr.IntOrString) int {
	probe := &appsv1beta1.CloneSet{Spec: appsv1beta1.CloneSetSpec{Replicas: set.Spec.Replicas}}
	probe.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateCloneSetStrategy{
		CloneSetUpdateParameters: appsv1beta1.CloneSetUpdateParameters{Partition: &value},
	}
	return int(probe.GetPartition())
}
