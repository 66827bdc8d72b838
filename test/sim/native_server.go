// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
)

// What an API server does to the workloads of Kubernetes.

// nativeStatefulSet and nativeDaemonSet are the kinds of the StatefulSets and DaemonSets of
// Kubernetes, here, where those of apps.kruise.io have the names.
const (
	nativeStatefulSet = "StatefulSet.apps"
	nativeDaemonSet   = "DaemonSet.apps"
)

// isNative reports whether objects of a kind are workloads of Kubernetes.
func isNative(kind string) bool {
	return slices.Contains([]string{"Deployment", "ReplicaSet", nativeStatefulSet, nativeDaemonSet}, kind)
}

// mutateStatus changes an object as a write to its status does: it may change
// annotations, and counts as no generation.
func mutateStatus[T client.Object](s *server, name string, change func(T)) {
	held, ok := get[T](s, name)
	if !ok {
		return
	}
	obj := held.DeepCopyObject().(T) //nolint:forcetypeassert // a copy has the type of its original
	change(obj)
	admitNativeStatus(held, obj)
	if !apiequality.Semantic.DeepEqual(held, obj) {
		s.store(objectKey{kindOf(obj), name}, obj)
	}
}

// tellsOfHold reports whether a ReplicaSet has annotations of a hold.
func tellsOfHold(obj client.Object) bool {
	rs, ok := obj.(*appsv1.ReplicaSet)
	return ok && len(keptBy(rs)) > 0
}

// isOfNativeInterest is what the controllers of native workloads are told of a
// workload, see controllers/native/watches.go.
func isOfNativeInterest(before, after client.Object) bool {
	if before == nil || after == nil || before.GetUID() != after.GetUID() || before.GetGeneration() != after.GetGeneration() {
		return true
	}
	withoutStatus := func(obj client.Object) map[string]string {
		annotations := maps.Clone(obj.GetAnnotations())
		delete(annotations, native.StatusAnnotation)
		return annotations
	}
	return !maps.Equal(before.GetLabels(), after.GetLabels()) || !maps.Equal(withoutStatus(before), withoutStatus(after)) ||
		observedBy(before) != observedBy(after)
}

// observedBy is what is told of the status of a workload.
func observedBy(obj client.Object) [3]int64 {
	switch typed := obj.(type) {
	case *appsv1.StatefulSet:
		return [3]int64{typed.Status.ObservedGeneration, int64(typed.Status.UpdatedReplicas)}
	case *appsv1.DaemonSet:
		return [3]int64{typed.Status.ObservedGeneration, int64(typed.Status.DesiredNumberScheduled), int64(typed.Status.UpdatedNumberScheduled)}
	default:
		return [3]int64{}
	}
}
