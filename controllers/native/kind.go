// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kind is a kind of Kubernetes whose pods are updated in place.
type Kind string

// The kinds.
const (
	Deployment  Kind = "Deployment"
	StatefulSet Kind = "StatefulSet"
	DaemonSet   Kind = "DaemonSet"
)

func (k Kind) groupVersionKind() schema.GroupVersionKind {
	return appsv1.SchemeGroupVersion.WithKind(string(k))
}

// newObject returns an empty object of the kind.
func (k Kind) newObject() client.Object {
	switch k {
	case StatefulSet:
		return &appsv1.StatefulSet{}
	case DaemonSet:
		return &appsv1.DaemonSet{}
	case Deployment:
		return &appsv1.Deployment{}
	default:
		return &appsv1.Deployment{}
	}
}

// workload is what the kinds do each in their way.
type workload interface {
	// spec returns what the object says.
	spec() spec
	// observe reads the revisions and the pods into the scope. The scope has no
	// target while Kubernetes has not made the revision of the present template.
	observe(ctx context.Context, r *Reconciler, s *scope) error
	// conclude writes what has to be there before Kubernetes may go on, when the
	// pods are updated. It returns true when nothing is missing.
	conclude(ctx context.Context, r *Reconciler, s *scope) (bool, error)
	// tidy brings to its end what is half done, of a workload whose hold was ended by
	// another client.
	tidy(ctx context.Context, r *Reconciler, s *scope) error
	// unheld returns the fields of the spec by which the hold ends, as a merge
	// patch, for a cluster that has no policy for it.
	unheld() map[string]any
}

// workloadOf returns the object as a workload.
func workloadOf(obj client.Object) workload {
	switch typed := obj.(type) {
	case *appsv1.StatefulSet:
		return statefulSet{typed}
	case *appsv1.DaemonSet:
		return daemonSet{typed}
	case *appsv1.Deployment:
		return deployment{typed}
	default:
		return deployment{&appsv1.Deployment{}} // no other kind is reconciled
	}
}

// spec is what the spec of a workload says, whatever its kind.
type spec struct {
	template        *corev1.PodTemplateSpec
	replicas        int
	minReadySeconds int32
	// isHeld is true when Kubernetes does not recreate pods. surges is true when it makes one
	// pod of a new template beside the others, and isPaused when the user has paused that.
	isHeld, surges, isPaused bool
	// recreates is why the workload asks for recreation, empty if it does not.
	recreates string
	// maxUnavailable is how many pods may be unavailable. It is 0 only if the spec says so,
	// or there is a pod more.
	maxUnavailable int
	// deletesFirst: Kubernetes deletes pods before it has made those that come in their places.
	deletesFirst bool
	// ordered: pods are created and deleted one after the other.
	ordered bool
	// keepsCount: a number of pods can be kept at their revision, see
	// options.partition.
	keepsCount bool
	// progressDeadline is after how long without progress that is reported; 0 for
	// never.
	progressDeadline time.Duration
}

// maxUnavailable returns how many pods may be unavailable. A percentage of few pods
// counts as one at least: without a pod more, as Kubernetes makes one then, nothing
// could be updated. Only 0 itself stays 0.
func maxUnavailable(value intstr.IntOrString, replicas int, roundUp bool) int {
	number, err := intstr.GetScaledValueFromIntOrPercent(&value, replicas, roundUp)
	if err != nil {
		return 1
	}
	if number == 0 && value != intstr.FromInt32(0) && value != intstr.FromString("0%") {
		return 1
	}
	return number
}

// partitionOf returns how many of the pods a partition keeps. A percentage is rounded
// up.
func partitionOf(value intstr.IntOrString, replicas int) int {
	number, err := intstr.GetScaledValueFromIntOrPercent(&value, replicas, true)
	if err != nil {
		return 0 // it was parsed
	}
	return min(number, replicas)
}
