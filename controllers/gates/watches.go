// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// controllerName names the controller in logs and metrics.
const controllerName = "gates"

// Add adds the controller to a manager, whose client must show its own writes and
// whose cache must have the options and indexes of package podcache. servesRequests says whether
// the manager has the controller of ContainerRecreateRequests.
func Add(mgr ctrl.Manager, servesRequests bool) error {
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), clock.RealClock{})
	r.ServesRequests = servesRequests
	b := ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&corev1.Pod{}, builder.WithPredicates(closed())).
		WithOptions(workload.ControllerOptions(executor.DefaultParallelism))
	pods := handler.EnqueueRequestsFromMapFunc(r.closedPods)
	for _, object := range []client.Object{&appsv1.Deployment{}, &appsv1.StatefulSet{}, &appsv1.DaemonSet{}} {
		b = b.Watches(object, pods, builder.WithPredicates(holdEnded()))
	}
	b = b.Watches(&appsv1.ReplicaSet{}, pods, builder.WithPredicates(ownerChanged()))
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("add controller %s: %w", controllerName, err)
	}
	return nil
}

// isClosed reports whether a pod has gates that may be for us to open, or a drain that may
// be for us to end.
func isClosed(object client.Object) bool {
	pod, ok := object.(*corev1.Pod)
	return ok && (nextStep(pod) != nil || inplace.HasDrainedLabel(pod))
}

// closed passes pods whose gates are closed, once, and again when nothing but their gates
// keeps them from serving: one that stays closed is held, and the end of its hold is an
// event of its own.
func closed() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return isClosed(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			isAnother := e.ObjectOld.GetUID() != e.ObjectNew.GetUID() || controllerUID(e.ObjectOld) != controllerUID(e.ObjectNew) ||
				e.ObjectOld.GetLabels()[appsv1beta1.DrainedLabel] != e.ObjectNew.GetLabels()[appsv1beta1.DrainedLabel] ||
				e.ObjectOld.GetAnnotations()[appsv1beta1.RecreateRequestAnnotation] != e.ObjectNew.GetAnnotations()[appsv1beta1.RecreateRequestAnnotation] ||
				containersReady(e.ObjectOld) == nil && containersReady(e.ObjectNew) != nil
			return isClosed(e.ObjectNew) && (isAnother || !isClosed(e.ObjectOld))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// holdEnded passes workloads whose hold ends. In the cache, one from which the label
// was taken that opts it in looks as if it was deleted.
func holdEnded() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return hasHold(e.ObjectOld) && !hasHold(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return hasHold(e.Object) },
	}
}

// ownerChanged passes ReplicaSets that came to another Deployment, or to none: one
// that is deleted with --cascade=orphan releases them before it is gone.
func ownerChanged() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return controllerUID(e.ObjectOld) != controllerUID(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

func controllerUID(object client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// closedPods maps a workload or a ReplicaSet to those of its pods whose gates are not
// open.
func (r *Reconciler) closedPods(ctx context.Context, object client.Object) []reconcile.Request {
	// What is listed here is only read, so it need not be a copy.
	options := []client.ListOption{client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
	replicaSets := &appsv1.ReplicaSetList{}
	err := podcache.ByOwner(ctx, r.client, object, replicaSets, options...)
	owners := []client.Object{object}
	for i := range replicaSets.Items {
		owners = append(owners, &replicaSets.Items[i])
	}
	var requests []reconcile.Request
	for _, owner := range owners {
		pods := &corev1.PodList{}
		if err == nil {
			err = podcache.ByOwner(ctx, r.client, owner, pods, options...)
		}
		for i := range pods.Items {
			if isClosed(&pods.Items[i]) {
				requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pods.Items[i])})
			}
		}
	}
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map workload", "workload", klog.KObj(object))
	}
	return requests
}
