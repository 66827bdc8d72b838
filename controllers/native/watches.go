// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/podcache"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Add adds the controllers of all kinds, and that of [Leftovers], to a manager, whose client must show its own
// writes and whose cache must be as package podcache says.
func Add(mgr ctrl.Manager, options engine.Options) error {
	for _, kind := range Kinds() {
		if err := add(mgr, kind, options); err != nil {
			return fmt.Errorf("add controller of kind %s: %w", kind, err)
		}
	}
	watch := newHoldWatch(mgr.GetClient(), mgr.GetEventRecorder("insitu-native"), options.Metrics.Rollouts, options.Capabilities)
	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("add what looks for workloads that would not be held: %w", err)
	}
	return addLeftovers(mgr)
}

func add(mgr ctrl.Manager, kind Kind, options engine.Options) error {
	name := "native-" + strings.ToLower(string(kind))
	r := NewReconciler(kind, mgr.GetClient(), mgr.GetAPIReader(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{})
	r.Capabilities, r.executor.DrainPause = options.Capabilities, executor.DrainPause
	r.executor.Turns = cmp.Or(options.Turns, r.executor.Turns)
	r.executor.Puller.WithoutNodes = options.NamespaceScope
	r.executor.PullAs(cmp.Or(options.Pulling, r.executor.Puller.Pulling))
	r.Measure(options.Metrics)
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(kind.newObject(), builder.WithPredicates(changed())).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.heldOwner)).
		Watches(&appsv1.ControllerRevision{}, handler.EnqueueRequestsFromMapFunc(r.heldOwner)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(r.drainingOwners)).
		WithOptions(workloads.ControllerOptions(options.MaxConcurrentReconciles))
	if kind == Deployment {
		b = b.Watches(&appsv1.ReplicaSet{}, handler.EnqueueRequestsFromMapFunc(r.heldOwner))
	}
	return b.Complete(r)
}

// changed passes what may change what is to be done with a workload. Of its status
// that is what its controller has seen, which our own kinds' do not wait for; of its
// annotations, all but our own report.
func changed() predicate.Predicate {
	return predicate.Or(workloads.SpecPredicate(), predicate.LabelChangedPredicate{}, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld != nil && e.ObjectNew != nil &&
			(observed(e.ObjectOld) != observed(e.ObjectNew) || !maps.Equal(withoutStatus(e.ObjectOld), withoutStatus(e.ObjectNew)))
	}})
}

// observation is what a workload's own controller has seen.
type observation struct {
	generation        int64
	replicas, updated int32
}

func observed(obj client.Object) observation {
	switch typed := obj.(type) {
	case *appsv1.StatefulSet:
		return observation{generation: typed.Status.ObservedGeneration, updated: typed.Status.UpdatedReplicas}
	case *appsv1.DaemonSet:
		return observation{typed.Status.ObservedGeneration, typed.Status.DesiredNumberScheduled, typed.Status.UpdatedNumberScheduled}
	default:
		return observation{}
	}
}

func withoutStatus(obj client.Object) map[string]string {
	annotations := maps.Clone(obj.GetAnnotations())
	delete(annotations, native.StatusAnnotation)
	return annotations
}

// heldOwner maps an object to the held workload that it belongs to. One at rest is reconciled for
// a ReplicaSet that still tells of a hold, and any one, also without the opt-in, for a pod that still
// pulls images.
func (r *Reconciler) heldOwner(ctx context.Context, obj client.Object) []reconcile.Request {
	owner := r.ownerOf(ctx, obj)
	if owner == nil {
		return nil
	}
	request := []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: obj.GetNamespace(), Name: owner.Name}}}
	if pod, isPod := obj.(*corev1.Pod); isPod && inplace.IsPuller(pod) {
		return request
	}
	held := r.kind.newObject()
	if !r.read(ctx, obj.GetNamespace(), owner.Name, held) {
		return nil
	}
	if _, isReplicaSet := obj.(*appsv1.ReplicaSet); held.GetLabels()[native.HeldLabel] == "" && (!isReplicaSet || !tellsOfHold(obj)) {
		return nil
	}
	return request
}

// ownerOf returns the workload of the kind that controls an object, itself or by another object
// between them; nil if there is none.
func (r *Reconciler) ownerOf(ctx context.Context, obj client.Object) *metav1.OwnerReference {
	owner := metav1.GetControllerOfNoCopy(obj)
	if between := r.newBetween(owner); between != nil {
		if !r.read(ctx, obj.GetNamespace(), owner.Name, between) {
			return nil
		}
		owner = metav1.GetControllerOfNoCopy(between)
	}
	if !workloads.IsKind(owner, r.kind.groupVersionKind()) {
		return nil
	}
	return owner
}

// newBetween returns an empty object of the kind of an owner that belongs to a workload itself;
// nil for another.
func (r *Reconciler) newBetween(owner *metav1.OwnerReference) client.Object {
	switch {
	case r.kind == Deployment && workloads.IsKind(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")):
		return &appsv1.ReplicaSet{}
	case r.kind != Deployment && workloads.IsKind(owner, appsv1.SchemeGroupVersion.WithKind("ControllerRevision")):
		return &appsv1.ControllerRevision{} // it controls pods that pull images
	default:
		return nil
	}
}

// drainingOwners maps an EndpointSlice to the held workloads that wait for a pod to
// leave it.
func (r *Reconciler) drainingOwners(ctx context.Context, slice client.Object) []reconcile.Request {
	pods := &corev1.PodList{}
	err := podcache.Draining(ctx, r.client, slice.GetNamespace(), pods, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map EndpointSlice", "EndpointSlice", klog.KObj(slice))
		return nil
	}
	var requests []reconcile.Request
	for i := range pods.Items {
		requests = append(requests, r.heldOwner(ctx, &pods.Items[i])...)
	}
	return requests
}

// read reads an object from the cache, and reports whether it is there. It is asked for
// every event of every pod, so what it reads is no copy, and not to be changed.
func (r *Reconciler) read(ctx context.Context, namespace, name string, into client.Object) bool {
	err := r.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into, client.DisableReadYourWritesConsistency, client.UnsafeDisableDeepCopy)
	if err != nil && !apierrors.IsNotFound(err) {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map to a workload", "kind", r.kind, "name", name)
	}
	return err == nil
}
