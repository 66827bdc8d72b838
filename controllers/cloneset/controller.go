// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package cloneset drives CloneSets of the group apps.kruise.io: pods that are
// alike, changed in place where the change allows it.
//
// A reconciliation observes everything once (scope), decides with pure functions
// (planScale here, inplace.MakePlan for what happens inside pods), writes what was
// decided, and reports in one status patch. It keeps no state: a manager that was
// killed at any moment is continued by the next one.
package cloneset

import (
	"context"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
)

// What is done to pods, claims and revisions needs what package statefulset says.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=clonesets/finalizers,verbs=update

// kind is the kind of the objects that are reconciled.
var kind = appsv1beta1.GroupVersion.WithKind("CloneSet")

// Reconciler reconciles CloneSets.
type Reconciler struct {
	engine.Core
	// random returns a string of that many characters, see idLength.
	random func(length int) string
}

// NewReconciler returns a Reconciler. The client reads from a cache with the
// indexes of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency), live from the API
// server. random gives the instance IDs of new pods: lower case letters and digits.
func NewReconciler(
	c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, random func(length int) string,
) *Reconciler {
	return &Reconciler{engine.NewCore(kind, c, live, recorder, clock), random}
}

// Reconcile brings the pods of one CloneSet one step nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.shell().Reconcile(ctx, request.NamespacedName, &appsv1beta1.CloneSet{})
}

func (r *Reconciler) shell() *engine.Shell[*appsv1beta1.CloneSet, *scope] {
	return &engine.Shell[*appsv1beta1.CloneSet, *scope]{
		Core:   &r.Core,
		Begin:  func(set *appsv1beta1.CloneSet) *scope { return newScope(set, r.Clock.Now()) },
		Report: r.patchStatus,
		Phases: []engine.Phase[*scope]{
			r.adopt,
			r.observePods,
			r.release,
			r.ensureRevisions,
			r.observeClaims,
			r.assess,
			r.scale,
			r.update,
			r.truncateHistory,
		},
	}
}
