// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// The kinds of Kubernetes whose pods may be updated in place.
var (
	deploymentKind  = appsv1.SchemeGroupVersion.WithKind("Deployment")
	replicaSetKind  = appsv1.SchemeGroupVersion.WithKind("ReplicaSet")
	statefulSetKind = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	daemonSetKind   = appsv1.SchemeGroupVersion.WithKind("DaemonSet")
)

// isOfKubernetes reports whether the controller of a pod is of one of the kinds.
func isOfKubernetes(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOfNoCopy(pod)
	kinds := []schema.GroupVersionKind{replicaSetKind, statefulSetKind, daemonSetKind}
	return slices.ContainsFunc(kinds, func(kind schema.GroupVersionKind) bool { return workload.IsKind(owner, kind) })
}

// isHeld reports whether the workload of a pod is held, by what a reader returns.
func isHeld(ctx context.Context, reader client.Reader, pod *corev1.Pod) (bool, error) {
	held, err := heldWorkload(ctx, reader, pod)
	return held != nil, err
}

// heldWorkload returns the workload of a pod if it is held, by what a reader returns; else nil. A
// workload that is not found is not held: the cache has none that is not opted in, and the pods of
// one that is gone are released or deleted.
func heldWorkload(ctx context.Context, reader client.Reader, pod *corev1.Pod) (client.Object, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if workload.IsKind(owner, replicaSetKind) {
		replicaSet := &appsv1.ReplicaSet{}
		if found, err := readOwner(ctx, reader, pod.Namespace, owner, replicaSet); !found {
			return nil, err
		}
		owner = metav1.GetControllerOfNoCopy(replicaSet)
	}
	object := newWorkload(owner)
	if object == nil {
		return nil, nil
	}
	if found, err := readOwner(ctx, reader, pod.Namespace, owner, object); !found || !hasHold(object) {
		return nil, err
	}
	return object, nil
}

// WorkloadOf returns the workload whose controller of ours updates a pod now: one of our own kinds,
// or one that is held; nil if there is none.
func WorkloadOf(ctx context.Context, reader client.Reader, pod *corev1.Pod) (client.Object, error) {
	if own, err := ownWorkload(ctx, reader, pod); own != nil || err != nil {
		return own, err
	}
	return heldWorkload(ctx, reader, pod)
}

// ownWorkload returns the workload of our own kinds that controls a pod; nil if there is none.
func ownWorkload(ctx context.Context, reader client.Reader, pod *corev1.Pod) (client.Object, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	var object client.Object
	switch {
	case workload.IsKind(owner, appsv1beta1.StatefulSetKind):
		object = &appsv1beta1.StatefulSet{}
	case workload.IsKind(owner, appsv1beta1.CloneSetKind):
		object = &appsv1beta1.CloneSet{}
	case workload.IsKind(owner, appsv1beta1.DaemonSetKind):
		object = &appsv1beta1.DaemonSet{}
	default:
		return nil, nil
	}
	if found, err := readOwner(ctx, reader, pod.Namespace, owner, object); !found {
		return nil, err
	}
	return object, nil
}

// newWorkload returns an empty object of the kind of a reference; nil if it is no kind
// that can be held.
func newWorkload(owner *metav1.OwnerReference) client.Object {
	switch {
	case workload.IsKind(owner, deploymentKind):
		return &appsv1.Deployment{}
	case workload.IsKind(owner, statefulSetKind):
		return &appsv1.StatefulSet{}
	case workload.IsKind(owner, daemonSetKind):
		return &appsv1.DaemonSet{}
	default:
		return nil
	}
}

// readOwner reads the object of a reference, and reports whether it is there: another
// one of its name does not count.
func readOwner(ctx context.Context, reader client.Reader, namespace string, owner *metav1.OwnerReference, into client.Object) (bool, error) {
	err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read %s %s/%s: %w", owner.Kind, namespace, owner.Name, err)
	}
	return into.GetUID() == owner.UID, nil
}

// hasHold reports whether a workload is opted in, and held.
func hasHold(object client.Object) bool {
	labels := object.GetLabels()
	_, optedIn := labels[native.UpdatePolicyLabel]
	return optedIn && labels[native.HeldLabel] != ""
}
