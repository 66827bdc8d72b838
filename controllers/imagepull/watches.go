// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package imagepull

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// concurrent is how many jobs are reconciled at the same time.
const concurrent = 2

// Served returns empty objects of the kinds of this package, which are to be watched; none where the
// API server does not serve both. Other kinds do without.
func Served(mapper meta.RESTMapper) ([]client.Object, error) {
	for _, kind := range []schema.GroupVersionKind{appsv1beta1.ImagePullJobKind, appsv1beta1.ImageListPullJobKind} {
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if meta.IsNoMatchError(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("find out whether %ss are served: %w", kind.Kind, err)
		}
	}
	return []client.Object{&appsv1beta1.ImagePullJob{}, &appsv1beta1.ImageListPullJob{}}, nil
}

// Add adds the controllers to a manager, whose client must show its own writes and whose cache must
// have the options and indexes of package podcache. The manager pulls as pulling says; with rights
// in namespaces only, it serves the jobs that name their nodes or select pods.
func Add(mgr ctrl.Manager, pulling *executor.Pulling, metrics *executor.Metrics, namespaceScope bool) error {
	return errors.Join(addJobs(mgr, pulling, metrics, namespaceScope), addLists(mgr))
}

func addJobs(mgr ctrl.Manager, pulling *executor.Pulling, metrics *executor.Metrics, namespaceScope bool) error {
	name := engine.ControllerName(appsv1beta1.ImagePullJobKind)
	r := NewReconciler(mgr.GetClient(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{}, pulling)
	r.metrics, r.namespaceScope = metrics.PullsOf(appsv1beta1.ImagePullJobKind), namespaceScope
	b := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&appsv1beta1.ImagePullJob{}, builder.WithPredicates(workload.SpecPredicate())).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.selectingPods), builder.WithPredicates(podMoved())).
		WithOptions(workload.ControllerOptions(concurrent))
	if !namespaceScope {
		b.Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.incomplete), builder.WithPredicates(nodeChanged()))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

func addLists(mgr ctrl.Manager) error {
	name := engine.ControllerName(appsv1beta1.ImageListPullJobKind)
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&appsv1beta1.ImageListPullJob{}, builder.WithPredicates(workload.SpecPredicate())).
		Owns(&appsv1beta1.ImagePullJob{}).
		WithOptions(workload.ControllerOptions(concurrent)).
		Complete(NewListReconciler(mgr.GetClient(), mgr.GetEventRecorder("insitu-"+name), clock.RealClock{}))
	if err != nil {
		return fmt.Errorf("add controller %s: %w", name, err)
	}
	return nil
}

// nodeChanged passes what says whether a node is one of a job, and whether it can begin.
func nodeChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isNode := e.ObjectOld.(*corev1.Node)
		after, isStill := e.ObjectNew.(*corev1.Node)
		return !isNode || !isStill || before.UID != after.UID || isReady(before) != isReady(after) ||
			(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) || !apiequality.Semantic.DeepEqual(before.Labels, after.Labels)
	}}
}

// podMoved passes what says on which nodes the pods run that a job selects.
func podMoved() predicate.Predicate {
	runsOn := func(object client.Object) string {
		if pod, isPod := object.(*corev1.Pod); isPod && runs(pod) {
			return pod.Spec.NodeName
		}
		return ""
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return runsOn(e.Object) != "" },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, after := runsOn(e.ObjectOld), runsOn(e.ObjectNew)
			return before != after || after != "" && !apiequality.Semantic.DeepEqual(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return runsOn(e.Object) != "" },
	}
}

// incomplete maps a node to the jobs that are not complete.
func (r *Reconciler) incomplete(ctx context.Context, node client.Object) []reconcile.Request {
	return r.jobsOf(ctx, node, func(*appsv1beta1.ImagePullJob) bool { return true })
}

// selectingPods maps a pod to the jobs of its namespace that select pods and are not complete.
func (r *Reconciler) selectingPods(ctx context.Context, pod client.Object) []reconcile.Request {
	return r.jobsOf(ctx, pod, func(job *appsv1beta1.ImagePullJob) bool { return job.Spec.PodSelector != nil })
}

func (r *Reconciler) jobsOf(ctx context.Context, object client.Object, isAbout func(*appsv1beta1.ImagePullJob) bool) []reconcile.Request {
	jobs := &appsv1beta1.ImagePullJobList{}
	// What is listed here is only read, so it need not be a copy.
	options := []client.ListOption{client.InNamespace(object.GetNamespace()), client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency}
	if err := r.client.List(ctx, jobs, options...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Failed to map object", "Object", klog.KObj(object))
		return nil
	}
	var requests []reconcile.Request
	for i := range jobs.Items {
		if job := &jobs.Items[i]; job.Status.CompletionTime == nil && isAbout(job) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)})
		}
	}
	return requests
}
