// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// controllerName names the controller in logs, metrics and events.
const controllerName = "statefulset"

// A reconciliation that failed is tried again after retryFirst, then after twice
// as long each time, up to retryLast: pods may be out of service meanwhile.
const (
	retryFirst = 100 * time.Millisecond
	retryLast  = 30 * time.Second
)

// Options configures the controller.
type Options struct {
	// MaxConcurrentReconciles is how many StatefulSets are reconciled at the
	// same time; at least 1.
	MaxConcurrentReconciles int
}

// Add adds the controller to a manager, whose client must show its own writes
// and whose cache must have the indexes of package podcache.
func Add(mgr ctrl.Manager, options Options) error {
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("insitu-"+controllerName), clock.RealClock{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&appsv1beta1.StatefulSet{}, builder.WithPredicates(predicate.Or(predicate.GenerationChangedPredicate{}, replacedPredicate))).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.adoptingSets)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.drainingSets)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(r.claimingSets)).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: max(options.MaxConcurrentReconciles, 1),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retryFirst, retryLast),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("add controller %s: %w", controllerName, err)
	}
	return nil
}

// drainingSets maps an EndpointSlice to the sets that wait for a pod of its
// namespace to leave it. The pods that a slice no longer lists cannot be read
// from it, so those that may have left are asked for.
func (r *Reconciler) drainingSets(ctx context.Context, slice client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	// What is listed here is only read, so it need not be a copy.
	err := podcache.Draining(ctx, r.client, slice.GetNamespace(), pods, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map EndpointSlice", "EndpointSlice", klog.KObj(slice))
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		pod := &pods.Items[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if !isOurs(owner) {
			continue
		}
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: pod.Namespace, Name: owner.Name}})
	}
	return requests
}

// replacedPredicate passes a set that took the place of another of its name while
// the watch was interrupted: it looks like an update, at the same generation.
var replacedPredicate = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	return e.ObjectOld != nil && e.ObjectNew != nil && e.ObjectOld.GetUID() != e.ObjectNew.GetUID()
}}

// adoptingSets maps a pod without a controller to the set that its name is one
// of, which may have to adopt it. Owned pods are mapped by their owner.
func (r *Reconciler) adoptingSets(ctx context.Context, pod client.Object) []reconcile.Request {
	end := strings.LastIndex(pod.GetName(), "-")
	if end < 0 || metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	key := client.ObjectKey{Namespace: pod.GetNamespace(), Name: pod.GetName()[:end]}
	err := r.client.Get(ctx, key, &appsv1beta1.StatefulSet{}, client.DisableReadYourWritesConsistency)
	if err != nil {
		if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to map pod", "Pod", klog.KObj(pod))
		}
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}

// claimingSets maps a claim to the sets that may have made it. Claims may
// outlive their sets and need not have an owner; they are told by their names.
func (r *Reconciler) claimingSets(ctx context.Context, claim client.Object) []reconcile.Request {
	var requests []reconcile.Request
	for _, name := range setNames(claim.GetName()) {
		key := client.ObjectKey{Namespace: claim.GetNamespace(), Name: name}
		err := r.client.Get(ctx, key, &appsv1beta1.StatefulSet{}, client.DisableReadYourWritesConsistency)
		if err == nil {
			requests = append(requests, reconcile.Request{NamespacedName: key})
		} else if !apierrors.IsNotFound(err) {
			ctrl.LoggerFrom(ctx).Error(err, "Failed to map claim", "PersistentVolumeClaim", klog.KObj(claim))
		}
	}
	return requests
}

// setNames returns the names of the sets whose claim may have a name: those of
// data-my-db-0 are my-db and db.
func setNames(claim string) []string {
	last := strings.LastIndex(claim, "-")
	if last < 0 {
		return nil
	}
	rest, ordinal := claim[:last], claim[last+1:]
	if _, err := strconv.Atoi(ordinal); err != nil {
		return nil
	}
	var names []string
	for {
		_, after, found := strings.Cut(rest, "-")
		if !found {
			return names
		}
		names, rest = append(names, after), after
	}
}

func isOurs(owner *metav1.OwnerReference) bool {
	if owner == nil || owner.Kind != "StatefulSet" {
		return false
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	return err == nil && gv.Group == appsv1beta1.GroupVersion.Group
}
