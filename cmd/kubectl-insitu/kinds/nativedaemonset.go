// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/native"
)

// nativeDaemonSet is the DaemonSet of Kubernetes.
func nativeDaemonSet() Kind {
	return Kind{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("DaemonSet"),
		resource:         "daemonsets", names: []string{"daemonset", "ds"},
		New:      func() client.Object { return &appsv1.DaemonSet{} },
		NewList:  func() client.ObjectList { return &appsv1.DaemonSetList{} },
		spelling: nativeSpelling,
		read: func(object client.Object) (View, bool) {
			ds, ok := object.(*appsv1.DaemonSet)
			if !ok {
				return View{}, false
			}
			return viewNativeDaemonSet(ds), true
		},
	}
}

func viewNativeDaemonSet(ds *appsv1.DaemonSet) View {
	status := ds.Status
	return View{
		Template: &ds.Spec.Template, Selector: ds.Spec.Selector, Partition: partitionInAnnotation(status.DesiredNumberScheduled),
		OnDelete:  ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		Replacing: status.UpdatedNumberScheduled < status.DesiredNumberScheduled,
		Replicas:  status.DesiredNumberScheduled, Updated: status.UpdatedNumberScheduled,
		Ready: status.NumberReady, Available: status.NumberAvailable,
		ObservedGeneration: status.ObservedGeneration,
	}.withOptions(native.DaemonSet, ds)
}
