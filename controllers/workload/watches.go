// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/insitu-dev/insitu/controllers/podcache"
)

// A reconciliation that failed is tried again after retryFirst, then after twice
// as long each time, up to retryLast: pods may be out of service meanwhile.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

// ControllerOptions returns the options of a controller that reconciles so many
// workloads at the same time; at least 1.
func ControllerOptions(concurrent int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: max(concurrent, 1),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
	}
}

// SpecPredicate passes what changes the spec of a workload, and one that took the
// place of another of its name while the watch was interrupted: that looks like
// an update, at the same generation.
func SpecPredicate() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil && e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
	}})
}

// Draining maps an EndpointSlice to the workloads of a kind that wait for a pod
// of its namespace to leave it. The pods that a slice no longer lists cannot be
// read from it, so those that may have left are asked for.
func Draining(ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, slice client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	// What is listed here is only read, so it need not be a copy.
	err := podcache.Draining(ctx, reader, slice.GetNamespace(), pods, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map EndpointSlice", "EndpointSlice", klog.KObj(slice))
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if !IsKind(owner, kind) {
			continue
		}
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}})
	}
	return requests
}

// Adopting maps a pod without a controller to the workload that its name is one
// of, which may have to adopt it. Owned pods are mapped by their owner. The
// workload is read into an object of its kind.
func Adopting(ctx context.Context, reader client.Reader, pod, into client.Object) []reconcile.Request {
	end := strings.LastIndex(pod.GetName(), "-")
	if end < 0 || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	key := client.ObjectKey{Namespace: pod.GetNamespace(), Name: pod.GetName()[:end]}
	if err := reader.Get(ctx, key, into, client.DisableReadYourWritesConsistency); err != nil {
		if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to map pod", "Pod", klog.KObj(pod))
		}
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}
