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
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
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
	// Capabilities tells what the API server can do; everything, if it is nil. It
	// is set before the first Reconcile.
	Capabilities *workload.Capabilities

	// NamespaceScope: there are rights in namespaces only, and none to classes and
	// volumes, which belong to the cluster. It is set before the first Reconcile.
	NamespaceScope bool

	// client reads from the cache, which shows our own writes, see Add.
	client client.Client
	// live reads from the API server.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	executor *executor.Executor
	pods     *workload.Pods
	keeper   *history.Keeper
	metrics  *workload.KindMetrics
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
	return &Reconciler{
		client:   c,
		live:     live,
		recorder: recorder,
		clock:    clock,
		executor: executor.New(c, recorder, clock),
		pods:     workload.NewPods(c, recorder),
		keeper:   history.NewKeeper(c),
		random:   random,
	}
}

// WriteInOrder makes the reconciler write to one pod after the other, always in
// the same order. It is for tests, and is called before the first Reconcile.
func (r *Reconciler) WriteInOrder() {
	r.pods.Parallelism, r.executor.Parallelism = 1, 1
}

// Reconcile brings the pods of one CloneSet one step nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.shell().Reconcile(ctx, request.NamespacedName, &appsv1beta1.CloneSet{})
}

func (r *Reconciler) shell() *engine.Shell[*appsv1beta1.CloneSet, *scope] {
	return &engine.Shell[*appsv1beta1.CloneSet, *scope]{
		Client: r.client, Metrics: r.metrics, Capabilities: r.Capabilities,
		Begin:  func(set *appsv1beta1.CloneSet) *scope { return newScope(set, r.clock.Now()) },
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
