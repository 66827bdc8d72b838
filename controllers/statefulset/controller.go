// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package statefulset drives StatefulSets of the group apps.kruise.io: pods with
// an identity that stays, changed in place where the change allows it.
//
// A reconciliation observes everything once (scope), decides with pure functions
// (planScale here, inplace.MakePlan for what happens inside pods), writes what was
// decided, and reports in one status patch. It keeps no state: a manager that was
// killed at any moment is continued by the next one.
package statefulset

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/history"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// conflictDelay is when pods that changed while they were written to are
// planned again, if no event of theirs comes first.
const conflictDelay = time.Second

// Reconciler reconciles StatefulSets.
type Reconciler struct {
	// client reads from the cache, which shows our own writes, see Add.
	client   client.Client
	recorder events.EventRecorder
	clock    clock.PassiveClock
	executor *executor.Executor
	history  *history.Keeper
}

// NewReconciler returns a Reconciler. The client reads from a cache with the
// indexes of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency).
func NewReconciler(c client.Client, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{
		client:   c,
		recorder: recorder,
		clock:    clock,
		executor: executor.New(c, recorder, clock),
		history:  history.NewKeeper(c),
	}
}

// Reconcile brings the pods of one StatefulSet one step nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	set := &appsv1beta1.StatefulSet{}
	if err := r.client.Get(ctx, request.NamespacedName, set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if set.DeletionTimestamp != nil {
		// The garbage collector deletes the pods, by their owner reference.
		return ctrl.Result{}, nil
	}
	s := newScope(set, r.clock.Now())
	err := r.runPhases(ctx, s)
	if statusErr := r.patchStatus(ctx, s, err); statusErr != nil {
		err = errors.Join(err, statusErr)
	}
	if err != nil {
		return ctrl.Result{}, ignoreConflict(err)
	}
	return ctrl.Result{RequeueAfter: s.requeueAfter}, nil
}

// phase is one part of a reconciliation.
type phase func(context.Context, *scope) error

// runPhases runs the phases in order. The first error ends them, except that a
// pod or claim that cannot be created does not keep others from being updated:
// such errors are collected in the scope.
func (r *Reconciler) runPhases(ctx context.Context, s *scope) error {
	phases := []phase{
		r.adoptPods,
		r.observePods,
		r.ensureRevisions,
		r.scale,
		r.update,
		r.truncateHistory,
	}
	for _, run := range phases {
		if err := run(ctx, s); err != nil {
			return err
		}
	}
	return errors.Join(s.scaleErr, s.updateErr)
}

// ignoreConflict turns errors that only say that something changed meanwhile
// into nothing: the change itself causes the next reconciliation.
func ignoreConflict(err error) error {
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}
