// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Add adds the controller to a manager, whose client must show its own writes
// and whose cache must have the indexes of package podcache. With rights in namespaces only,
// it does no more than to say in their status that DaemonSets are not served.
func Add(mgr ctrl.Manager, options engine.Options) error {
	name := engine.ControllerName(kind)
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{}, rand.String)
	r.Measure(options.Metrics)
	controller := r.Controller(mgr, options, &appsv1beta1.DaemonSet{}, workload.SpecPredicate(), r.adoptingSets)
	if !options.NamespaceScope {
		controller.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.allSets), builder.WithPredicates(nodeChanged()))
	}
	if err := controller.Complete(r); err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

// nodeChanged passes what says which pods a node runs, and whether they can be changed there. The
// kubelet writes the conditions of its node every few minutes; most of these writes change no
// status.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isNode := e.ObjectOld.(*corev1.Node)
		after, isStill := e.ObjectNew.(*corev1.Node)
		return !isNode || !isStill || (whyNotNow(before) == "") != (whyNotNow(after) == "") ||
			!apiequality.Semantic.DeepEqual(before.Labels, after.Labels) || !apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints)
	}}
}

// allSets maps a node to all sets: there are few of them.
func (r *Reconciler) allSets(ctx context.Context, node client.Object) []reconcile.Request {
	return r.setsOf(ctx, node, func(*appsv1beta1.DaemonSet) bool { return true })
}

// adoptingSets maps a pod without a controller to the sets that may have to adopt it.
func (r *Reconciler) adoptingSets(ctx context.Context, pod client.Object) []reconcile.Request {
	if metav1.GetControllerOfNoCopy(pod) != nil {
		return nil
	}
	return r.setsOf(ctx, pod, func(set *appsv1beta1.DaemonSet) bool {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		return err == nil && selector.Matches(labels.Set(pod.GetLabels())) // else its own reconciliation says so
	})
}

// setsOf returns requests for the sets in the namespace of an object, or in all for one that has
// none, that it is about.
func (r *Reconciler) setsOf(ctx context.Context, object client.Object, isAbout func(*appsv1beta1.DaemonSet) bool) []reconcile.Request {
	sets := &appsv1beta1.DaemonSetList{}
	if err := r.Client.List(ctx, sets, client.InNamespace(object.GetNamespace()), client.DisableReadYourWritesConsistency); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map object", "Object", klog.KObj(object))
		return nil
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		if isAbout(&sets.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&sets.Items[i])})
		}
	}
	return requests
}
