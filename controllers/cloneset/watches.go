// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// controllerName names the controller in logs, metrics and events.
const controllerName = "cloneset"

// Add adds the controller to a manager, whose client must show its own writes
// and whose cache must have the indexes of package podcache.
func Add(mgr ctrl.Manager, options engine.Options) error {
	recorder := mgr.GetEventRecorder("insitu-" + controllerName)
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{}, rand.String)
	r.Capabilities, r.NamespaceScope = options.Capabilities, options.NamespaceScope
	r.executor.DrainPause, r.executor.Turns = executor.DrainPause, cmp.Or(options.Turns, r.executor.Turns)
	r.Measure(options.Metrics)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&appsv1beta1.CloneSet{}, builder.WithPredicates(changed())).
		Owns(&corev1.Pod{}).
		Owns(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.adoptingSets)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.drainingSets)).
		WithOptions(workload.ControllerOptions(options.MaxConcurrentReconciles)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("add controller %s: %w", controllerName, err)
	}
	return nil
}

// changed passes what changes the spec of a set, or its labels: one of them says
// which pods count as replicas, and raises no generation.
func changed() predicate.Predicate {
	return predicate.Or(workload.SpecPredicate(), predicate.LabelChangedPredicate{})
}

// drainingSets maps an EndpointSlice to the sets that wait for a pod to leave it.
func (r *Reconciler) drainingSets(ctx context.Context, slice client.Object) []reconcile.Request {
	return workload.Draining(ctx, r.client, kind, slice)
}

// adoptingSets maps a pod without a controller to the sets that may have to adopt it:
// those that select it, whatever its name is.
func (r *Reconciler) adoptingSets(ctx context.Context, pod client.Object) []reconcile.Request {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	sets := &appsv1beta1.CloneSetList{}
	if err := r.client.List(ctx, sets, client.InNamespace(pod.GetNamespace()), client.DisableReadYourWritesConsistency); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map pod", "Pod", klog.KObj(pod))
		return nil
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		selector, err := metav1.LabelSelectorAsSelector(sets.Items[i].Spec.Selector)
		if err == nil && selector.Matches(labels.Set(pod.GetLabels())) { // else its own reconciliation says so
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}
