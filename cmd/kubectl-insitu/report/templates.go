// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TemplateOf returns the pod template of a workload.
func TemplateOf(object client.Object) *corev1.PodTemplateSpec {
	switch typed := object.(type) {
	case *appsv1beta1.StatefulSet:
		return &typed.Spec.Template
	case *appsv1beta1.CloneSet:
		return &typed.Spec.Template
	case *appsv1.Deployment:
		return &typed.Spec.Template
	case *appsv1.StatefulSet:
		return &typed.Spec.Template
	case *appsv1.DaemonSet:
		return &typed.Spec.Template
	default:
		return nil
	}
}

// claimTemplatesOf returns the claim templates of a workload.
func claimTemplatesOf(object client.Object) []corev1.PersistentVolumeClaim {
	switch typed := object.(type) {
	case *appsv1beta1.StatefulSet:
		return typed.Spec.VolumeClaimTemplates
	case *appsv1beta1.CloneSet:
		return typed.Spec.VolumeClaimTemplates
	case *appsv1.StatefulSet:
		return typed.Spec.VolumeClaimTemplates
	default:
		return nil
	}
}
