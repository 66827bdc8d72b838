// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// statefulSet is the StatefulSet of Insitu.
func statefulSet() Kind {
	return Kind{
		GroupVersionKind: appsv1beta1.GroupVersion.WithKind("StatefulSet"),
		resource:         "statefulsets", names: []string{"statefulset", "sts", "asts"},
		New:            func() client.Object { return &appsv1beta1.StatefulSet{} },
		NewList:        func() client.ObjectList { return &appsv1beta1.StatefulSetList{} },
		NamesRevisions: true,
		read: func(object client.Object) (View, bool) {
			set, ok := object.(*appsv1beta1.StatefulSet)
			if !ok {
				return View{}, false
			}
			return viewStatefulSet(set), true
		},
	}
}

func viewStatefulSet(set *appsv1beta1.StatefulSet) View {
	status := set.Status
	v := View{
		Template: &set.Spec.Template, ClaimTemplates: set.Spec.VolumeClaimTemplates, Selector: set.Spec.Selector,
		Policy: string(set.GetPodUpdatePolicy()), Parameters: [][]string{nestedParameters()},
		Partition: Partition{
			Paths: [][]string{partitionIn(nestedParameters())},
			Value: intstr.FromInt32(set.GetPartition()), Pods: set.GetPartition(), Keeps: keeps(set.GetReplicas()),
		},
		Paused:   set.IsPaused(),
		OnDelete: set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType,
		Replicas: set.GetReplicas(), Updated: status.UpdatedReplicas, Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		InPlace: status.InPlaceUpdated, Recreated: status.Recreated, MaxUnavailable: set.GetMaxUnavailable(),
		ObservedGeneration: status.ObservedGeneration, UpdateRevision: status.UpdateRevision, CurrentRevision: status.CurrentRevision,
		Conditions: status.Conditions, Blockers: status.Blockers, Kept: appsv1beta1.SumKept(status.VolumeClaims),
		RecreatesClaims: set.GetVolumeClaimUpdateStrategyType() == appsv1beta1.RecreateVolumeClaimUpdateStrategyType,
		Inspect: func(ctx context.Context, eyes workload.Eyes) workload.Inspection {
			return statefulset.Inspect(ctx, eyes, set)
		},
		Resume: func() bool { return resumeStatefulSet(set) },
	}
	if v.OnDelete {
		v.NotRolling = whenDeleted
	}
	return v
}

func resumeStatefulSet(set *appsv1beta1.StatefulSet) bool {
	if !set.IsPaused() {
		return false
	}
	set.Spec.UpdateStrategy.RollingUpdate.Paused = false
	return true
}
