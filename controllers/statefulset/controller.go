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

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/recreate"
)

// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=statefulsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/resize,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods/eviction,verbs=create
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=discovery.k8s.io,resources=endpointslices,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// kind is the kind of the objects that are reconciled.
var kind = appsv1beta1.GroupVersion.WithKind("StatefulSet")

// Reconciler reconciles StatefulSets.
type Reconciler struct {
	engine.Core
	recreate *recreate.Recreator
}

// NewReconciler returns a Reconciler. The client reads from a cache with the
// indexes of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency), live from the API
// server.
func NewReconciler(c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{engine.NewCore(kind, c, live, recorder, clock), recreate.New(c, live, recorder)}
}

// Reconcile brings the pods of one StatefulSet one step nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.shell().Reconcile(ctx, request.NamespacedName, &appsv1beta1.StatefulSet{})
}

func (r *Reconciler) shell() *engine.Shell[*appsv1beta1.StatefulSet, *scope] {
	return &engine.Shell[*appsv1beta1.StatefulSet, *scope]{
		Core:   &r.Core,
		Begin:  func(set *appsv1beta1.StatefulSet) *scope { return newScope(set, r.Clock.Now()) },
		Report: r.patchStatus,
		Gone:   r.forget,
		Phases: []engine.Phase[*scope]{
			r.adopt,
			r.observePods,
			engine.Common[*scope](r.Release),
			r.repairIdentity,
			r.ensureRevisions,
			r.observeClaims,
			r.ensureClaimOwners,
			r.scale,
			r.update,
			r.truncateHistory,
		},
	}
}

// forget drops what is kept of a set that is gone.
func (r *Reconciler) forget(ctx context.Context, key types.NamespacedName) error {
	r.recreate.Metrics.Forget(kind.GroupKind().String(), key)
	if r.NamespaceScope {
		return nil
	}
	return r.recreate.Unprotect(ctx, key.Namespace)
}
