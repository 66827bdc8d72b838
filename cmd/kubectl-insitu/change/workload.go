// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package change

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
)

// Workload is a workload as the API server holds it, or as it is to be. It keeps fields
// that this release does not know.
type Workload struct {
	Kind cluster.Kind
	*unstructured.Unstructured
}

// String names the workload as kubectl does: statefulset.apps.kruise.io/db.
func (w *Workload) String() string {
	return w.Kind.String() + "/" + w.GetName()
}

// isOurs reports whether the kind is one of Insitu.
func (w *Workload) isOurs() bool {
	return w.Kind.Group == appsv1beta1.GroupVersion.Group
}

// isDriven reports whether Insitu updates the pods.
func (w *Workload) isDriven() bool {
	_, hasOptedIn := w.GetLabels()[native.UpdatePolicyLabel]
	return w.isOurs() || hasOptedIn
}

// isHeld reports whether the controller of Kubernetes is held.
func (w *Workload) isHeld() bool {
	_, isHeld := w.GetLabels()[native.HeldLabel]
	return !w.isOurs() && isHeld
}

// typed returns the workload as an object of its Go type: *appsv1beta1.StatefulSet,
// *appsv1beta1.CloneSet, *appsv1.Deployment, *appsv1.StatefulSet or *appsv1.DaemonSet.
func (w *Workload) typed() (any, error) {
	typed := w.Kind.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(w.Object, typed); err != nil {
		return nil, fmt.Errorf("read %s: %w", w, err)
	}
	return typed, nil
}

// replicas returns how many pods there are to be.
func replicas(typed any) int {
	switch w := typed.(type) {
	case *appsv1beta1.StatefulSet:
		return int(w.GetReplicas())
	case *appsv1beta1.CloneSet:
		return int(w.GetReplicas())
	case *appsv1.Deployment:
		return int(orOne(w.Spec.Replicas))
	case *appsv1.StatefulSet:
		return int(orOne(w.Spec.Replicas))
	case *appsv1.DaemonSet:
		return int(w.Status.DesiredNumberScheduled)
	default:
		return 0
	}
}

func orOne(replicas *int32) int32 {
	if replicas == nil {
		return 1
	}
	return *replicas
}

// notRolling returns why no controller updates the pods, in words; empty if one does.
func notRolling(typed any) string {
	onDelete := "spec.updateStrategy.type is OnDelete: each pod is updated when a user deletes it"
	switch w := typed.(type) {
	case *appsv1beta1.StatefulSet:
		if w.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType {
			return onDelete
		}
	case *appsv1beta1.CloneSet:
		if w.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType {
			return onDelete
		}
	case *appsv1.StatefulSet:
		if w.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType && w.Labels[native.HeldLabel] == "" {
			return onDelete
		}
	case *appsv1.DaemonSet:
		if w.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType && w.Labels[native.HeldLabel] == "" {
			return onDelete
		}
	case *appsv1.Deployment:
		if w.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
			return "spec.strategy.type is Recreate: Kubernetes deletes all pods, and makes new ones"
		}
	}
	return ""
}
