// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Add adds the controller to a manager, whose client must show its own writes
// and whose cache must have the indexes of package podcache.
func Add(mgr ctrl.Manager, options engine.Options) error {
	name := engine.ControllerName(kind)
	recorder := mgr.GetEventRecorder("insitu-" + name)
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), recorder, clock.RealClock{}, rand.String)
	r.Measure(options.Metrics)
	err := r.Controller(mgr, options, &appsv1beta1.CloneSet{}, changed(), r.adoptingSets).
		Owns(&corev1.PersistentVolumeClaim{}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

// changed passes what changes the spec of a set, or its labels: one of them says
// which pods count as replicas, and raises no generation.
func changed() predicate.Predicate {
	return predicate.Or(workload.SpecPredicate(), predicate.LabelChangedPredicate{})
}

// adoptingSets maps a pod without a controller to the sets that may have to adopt it:
// those that select it, whatever its name is.
func (r *Reconciler) adoptingSets(ctx context.Context, pod client.Object) []reconcile.Request {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	sets := &appsv1beta1.CloneSetList{}
	if err := r.Client.List(ctx, sets, client.InNamespace(pod.GetNamespace()), client.DisableReadYourWritesConsistency); err != nil {
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
