// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreaterequest

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// concurrent is of how many pods the requests are reconciled at the same time.
const concurrent = 4

// Served returns empty objects of the kind of this package, which are to be watched; none where the
// API server does not serve it. Other kinds do without.
func Served(mapper meta.RESTMapper) ([]client.Object, error) {
	kind := appsv1beta1.ContainerRecreateRequestKind
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find out whether %ss are served: %w", kind.Kind, err)
	}
	return []client.Object{&appsv1beta1.ContainerRecreateRequest{}}, nil
}

// Add adds the controller to a manager, whose client must show its own writes and whose cache must
// have the options and indexes of package podcache.
func Add(ctx context.Context, mgr ctrl.Manager, turns *executor.Turns, metrics *executor.Metrics) error {
	name := engine.ControllerName(appsv1beta1.ContainerRecreateRequestKind)
	if err := mgr.GetFieldIndexer().IndexField(ctx, &request{}, podNameField, podNames); err != nil {
		return fmt.Errorf("index ContainerRecreateRequests by their pods: %w", err)
	}
	r := NewReconciler(mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{})
	r.executor.DrainPause, r.executor.Turns, r.metrics = executor.DrainPause, turns, metrics
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		Watches(&appsv1beta1.ContainerRecreateRequest{}, handler.EnqueueRequestsFromMapFunc(podOf)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.requestedPod)).
		WithOptions(workload.ControllerOptions(concurrent)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

// podNameField is the index of requests by the names of their pods.
const podNameField = "spec.podName"

func podNames(object client.Object) []string {
	one, isRequest := object.(*request)
	if !isRequest {
		return nil
	}
	return []string{one.Spec.PodName}
}

// aboutPod selects the requests about the pod of a name.
func aboutPod(name types.NamespacedName) []client.ListOption {
	return []client.ListOption{client.InNamespace(name.Namespace), client.MatchingFields{podNameField: name.Name}}
}

// podOf maps a request to its pod.
func podOf(_ context.Context, object client.Object) []reconcile.Request {
	one, isRequest := object.(*request)
	if !isRequest {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: one.Namespace, Name: one.Spec.PodName}}}
}

// requestedPod returns a pod that a request is about, or that has been asked by one that may be gone.
func (r *Reconciler) requestedPod(ctx context.Context, pod client.Object) []reconcile.Request {
	found := []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(pod)}}
	if _, asked := pod.GetAnnotations()[appsv1beta1.RecreateRequestAnnotation]; asked {
		return found
	}
	list := &appsv1beta1.ContainerRecreateRequestList{}
	// What is listed here is only read, so it need not be a copy.
	options := append(aboutPod(client.ObjectKeyFromObject(pod)), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err := r.client.List(ctx, list, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map pod", "Pod", klog.KObj(pod))
		return nil
	}
	for i := range list.Items {
		if isOpen(&list.Items[i]) {
			return found
		}
	}
	return nil
}
