// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
)

// deploymentKind is the Deployment of Kubernetes, opted in. It has no field for the
// budget of resizes.
var deploymentKind = kind{
	build: func(pods int) client.Object {
		labels := map[string]string{"app": workloadName}

		return &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: workloadName,
				Labels: map[string]string{native.UpdatePolicyLabel: string(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType)},
			},
			Spec: appsv1.DeploymentSpec{
				Replicas: ptr.To(int32(pods)),
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Strategy: appsv1.DeploymentStrategy{
					Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{},
				},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						ReadinessGates: []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}},
						Containers:     []corev1.Container{{Name: "main", Image: image(0)}},
					},
				},
			},
		}
	},
	parts: func(workload client.Object) parts {
		spec := &workload.(*appsv1.Deployment).Spec

		return parts{pod: &spec.Template.Spec, maxUnavailable: &spec.Strategy.RollingUpdate.MaxUnavailable}
	},
	progress: func(workload client.Object) progress {
		status := workload.(*appsv1.Deployment).Status
		_, held := workload.GetLabels()[native.HeldLabel]

		return progress{
			observed:  status.ObservedGeneration == workload.GetGeneration(),
			available: int(min(status.UpdatedReplicas, status.AvailableReplicas)),
			settled:   !held,
		}
	},
}
