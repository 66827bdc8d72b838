// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	nativeapi "github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/native"
)

// deployment is the Deployment of Kubernetes.
func deployment() Kind {
	return Kind{
		GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"),
		resource:         "deployments", names: []string{"deployment", "deploy"},
		New:                func() client.Object { return &appsv1.Deployment{} },
		NewList:            func() client.ObjectList { return &appsv1.DeploymentList{} },
		ThroughReplicaSets: true, KubectlPauses: true, spelling: nativeSpelling,
		read: func(object client.Object) (View, bool) {
			d, ok := object.(*appsv1.Deployment)
			if !ok {
				return View{}, false
			}
			return viewDeployment(d), true
		},
	}
}

func viewDeployment(d *appsv1.Deployment) View {
	replicas, status := ptr.Deref(d.Spec.Replicas, 1), d.Status
	v := View{
		Template: &d.Spec.Template, Selector: d.Spec.Selector, Partition: partitionInAnnotation(replicas),
		PausedInSpec: d.Spec.Paused, PausedByUser: nativeapi.IsPausedByUser(d),
		Replacing: status.UpdatedReplicas < status.Replicas,
		Replicas:  replicas, Updated: status.UpdatedReplicas, Ready: status.ReadyReplicas, Available: status.AvailableReplicas,
		ObservedGeneration: status.ObservedGeneration,
	}.withOptions(native.Deployment, d)
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		v.NotRolling = "spec.strategy.type is Recreate: Kubernetes deletes all pods, and makes new ones"
	}
	v.Resume = func() bool { return resumeDeployment(d) }
	return v
}

// resumeDeployment ends the pause of a held Deployment that is its user's, too.
func resumeDeployment(d *appsv1.Deployment) bool {
	wasPaused := resumeNative(d)
	if IsHeld(d) && nativeapi.IsPausedByUser(d) {
		d.Spec.Paused, wasPaused = false, true
	}
	return wasPaused
}
