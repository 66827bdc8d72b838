// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/daemonset"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// daemonSet is the DaemonSet of Insitu.
func daemonSet() Kind {
	return Kind{
		GroupVersionKind: appsv1beta1.DaemonSetKind,
		resource:         "daemonsets", names: []string{"daemonset", "ds", "ads", "daemon"},
		New:            func() client.Object { return &appsv1beta1.DaemonSet{} },
		NewList:        func() client.ObjectList { return &appsv1beta1.DaemonSetList{} },
		NamesRevisions: true,
		spelling: strings.NewReplacer(
			"podUpdatePolicy is ReCreate", "rollingUpdateType changes no pod in place", "podUpdatePolicy", "rollingUpdateType",
			"Lower the partition when", "Lower the partition, or widen the selector of nodes, when",
		),
		read: func(object client.Object) (View, bool) {
			set, ok := object.(*appsv1beta1.DaemonSet)
			if !ok {
				return View{}, false
			}
			return viewDaemonSet(set), true
		},
	}
}

func viewDaemonSet(set *appsv1beta1.DaemonSet) View {
	status := set.Status
	nodes := int(status.DesiredNumberScheduled)
	v := View{
		Template: &set.Spec.Template, Selector: set.Spec.Selector,
		Policy: string(set.GetPodUpdatePolicy()), Parameters: [][]string{nestedParameters()},
		Partition: Partition{
			Paths: [][]string{partitionIn(nestedParameters())}, TakesPercentages: true,
			Value: ptr.Deref(set.GetRollingUpdate().Partition, intstr.FromInt32(0)), Pods: int32(set.GetPartition(nodes)), //nolint:gosec // at most the nodes
			Keeps: func(value intstr.IntOrString) int { return keptNodes(nodes, value) },
		},
		Paused:   set.IsPaused(),
		OnDelete: set.IsOnDelete(),
		Replicas: status.DesiredNumberScheduled, Updated: status.UpdatedNumberScheduled, Ready: status.NumberReady, Available: status.NumberAvailable,
		InPlace: status.InPlaceUpdated, Recreated: status.Recreated, MaxUnavailable: int32(set.GetMaxUnavailable(nodes)), //nolint:gosec // nodes
		ObservedGeneration: status.ObservedGeneration, UpdateRevision: revisionOf(set, status.UpdateRevision), CurrentRevision: revisionOf(set, status.CurrentRevision),
		Conditions: status.Conditions, Blockers: status.Blockers,
		Inspect: func(ctx context.Context, eyes workload.Eyes) workload.Inspection {
			return daemonset.Inspect(ctx, eyes, set)
		},
		Resume: func() bool { return resumeDaemonSet(set) },
	}
	if v.OnDelete {
		v.NotRolling = whenDeleted
	}
	if set.GetRollingUpdate().Selector != nil {
		v.KeepsToo = "spec.updateStrategy.rollingUpdate.selector keeps the pods of nodes that it does not select as they are"
	}
	return v
}

// revisionOf returns the name of a revision, of which the status has the hash; empty for none.
func revisionOf(set *appsv1beta1.DaemonSet, hash string) string {
	if hash == "" {
		return ""
	}
	return set.Name + "-" + hash
}

func resumeDaemonSet(set *appsv1beta1.DaemonSet) bool {
	if !set.IsPaused() {
		return false
	}
	set.Spec.UpdateStrategy.RollingUpdate.Paused = nil
	return true
}

// keptNodes returns of how many of so many nodes a partition keeps the pods.
func keptNodes(nodes int, value intstr.IntOrString) int {
	probe := &appsv1beta1.DaemonSet{}
	probe.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSetStrategy{Partition: &value}
	return probe.GetPartition(nodes)
}
