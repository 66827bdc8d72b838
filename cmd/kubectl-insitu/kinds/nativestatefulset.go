// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
)

// nativeStatefulSet is the StatefulSet of Kubernetes.
func nativeStatefulSet() Kind {
	return Kind{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		resource:         "statefulsets", names: []string{"statefulset", "sts"},
		New:            func() client.Object { return &appsv1.StatefulSet{} },
		NewList:        func() client.ObjectList { return &appsv1.StatefulSetList{} },
		NamesRevisions: true, spelling: nativeSpelling,
		read: func(object client.Object) (View, bool) {
			set, ok := object.(*appsv1.StatefulSet)
			if !ok {
				return View{}, false
			}
			return viewNativeStatefulSet(set), true
		},
	}
}

func viewNativeStatefulSet(set *appsv1.StatefulSet) View {
	replicas, status := ptr.Deref(set.Spec.Replicas, 1), set.Status
	v := View{
		Template: &set.Spec.Template, ClaimTemplates: set.Spec.VolumeClaimTemplates, Selector: set.Spec.Selector,
		Partition: partitionOfNativeStatefulSet(set, replicas),
		OnDelete:  set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType,
		Replacing: status.UpdateRevision != status.CurrentRevision,
		Replicas:  replicas, Updated: status.UpdatedReplicas, Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		ObservedGeneration: status.ObservedGeneration, UpdateRevision: status.UpdateRevision, CurrentRevision: status.CurrentRevision,
	}
	if set.Spec.UpdateStrategy.RollingUpdate != nil {
		start := ptr.Deref(set.Spec.Ordinals, appsv1.StatefulSetOrdinals{}).Start
		v.KeptBelow = ptr.To(int(start) + int(v.Partition.Pods))
	}
	return v.withOptions(native.StatefulSet, set)
}

// partitionOfNativeStatefulSet returns its own field or, while it is held, what the hold has
// put aside. A value is written to the field in either case: the policy of the hold takes it
// from there, and keeps what else it has put aside.
func partitionOfNativeStatefulSet(set *appsv1.StatefulSet, replicas int32) Partition {
	p := Partition{Paths: [][]string{partitionIn(nestedParameters())}, Keeps: keeps(replicas)}
	if _, isHeld := set.Labels[nativeapi.HeldLabel]; isHeld {
		p.Annotation = nativeapi.HeldPartitionAnnotation
	}
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		p.Pods = ptr.Deref(rolling.Partition, 0)
		p.Value = intstr.FromInt32(p.Pods)
	}
	return p
}
