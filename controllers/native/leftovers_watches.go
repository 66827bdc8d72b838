// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"maps"

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

	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
)

// addLeftovers adds the controller of pods that were left behind.
func addLeftovers(mgr ctrl.Manager) error {
	const name = "native-leftovers"
	l := NewLeftovers(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{})
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&appsv1.ReplicaSet{}, builder.WithPredicates(mayBePresent())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(replicaSetOf), builder.WithPredicates(marked())).
		Watches(&appsv1.Deployment{}, handler.EnqueueRequestsFromMapFunc(l.replicaSets), builder.WithPredicates(holdEnds())).
		WithOptions(workloads.ControllerOptions(1)).
		Complete(l)
	if err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

// marked passes pods that were changed in place, when they come, are changed again, or
// come to another owner.
func marked() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return hasMark(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return hasMark(e.ObjectNew) && (ownerUID(e.ObjectOld) != ownerUID(e.ObjectNew) ||
				e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()))
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// mayBePresent passes ReplicaSets that may have become the present one of a Deployment: its
// controller numbers that, and writes how many pods there are to be. A new one has no pods.
func mayBePresent() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || ownerUID(e.ObjectOld) != ownerUID(e.ObjectNew) ||
				!maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
		},
		DeleteFunc: func(event.DeleteEvent) bool { return false },
	}
}

// holdEnds passes Deployments whose hold ends. In the cache, one that is opted out looks as
// if it was deleted.
func holdEnds() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool { return hasHold(e.ObjectOld) && !hasHold(e.ObjectNew) },
		DeleteFunc: func(event.DeleteEvent) bool { return true },
	}
}

func ownerUID(object client.Object) types.UID {
	if owner := metav1.GetControllerOfNoCopy(object); owner != nil {
		return owner.UID
	}
	return ""
}

// replicaSetOf maps a pod to its ReplicaSet.
func replicaSetOf(_ context.Context, pod client.Object) []reconcile.Request {
	owner := metav1.GetControllerOfNoCopy(pod)
	if !workloads.IsKind(owner, replicaSetKind) {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: owner.Name}}}
}

// replicaSets maps a Deployment to its ReplicaSets that have pods.
func (l *Leftovers) replicaSets(ctx context.Context, d client.Object) []reconcile.Request {
	list := &appsv1.ReplicaSetList{}
	// What is listed here is only read, so it need not be a copy.
	err := podcache.ByOwner(ctx, l.client, d, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map Deployment", "Deployment", klog.KObj(d))
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if isLive(&list.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
