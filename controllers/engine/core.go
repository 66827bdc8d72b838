// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Core is what the reconciler of a kind works with. It is set up before the first Reconcile.
type Core struct {
	// Kind is that of the workloads.
	Kind schema.GroupVersionKind
	// Capabilities tells what the API server can do; everything, if it is nil.
	Capabilities *workload.Capabilities
	// NamespaceScope: there are rights in namespaces only, and none to classes and
	// volumes, which belong to the cluster.
	NamespaceScope bool

	// Client reads from the cache, which shows our own writes, see NewCore.
	Client client.Client
	// Live reads from the API server.
	Live     client.Reader
	Recorder events.EventRecorder
	Clock    clock.PassiveClock

	Executor *executor.Executor
	Pods     *workload.Pods
	Keeper   *history.Keeper
	// Metrics are what is measured; nothing, if they are nil.
	Metrics *workload.KindMetrics
}

// NewCore returns the Core of a kind. The client reads from a cache with the indexes of package
// podcache that waits for its own writes (client.CacheOptions.EnableReadYourWritesConsistency),
// live from the API server.
func NewCore(kind schema.GroupVersionKind, c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) Core {
	carriesOut := executor.New(c, recorder, clock)
	carriesOut.Puller = &executor.Puller{Kind: kind, Live: live, Pulling: &executor.Pulling{}}
	return Core{
		Kind: kind, Client: c, Live: live, Recorder: recorder, Clock: clock,
		Executor: carriesOut, Pods: workload.NewPods(c, recorder), Keeper: history.NewKeeper(c),
	}
}

// WriteInOrder makes the reconciler write to one pod after the other, always in the same
// order. It is for tests.
func (c *Core) WriteInOrder() {
	c.Pods.Parallelism, c.Executor.Parallelism = 1, 1
}

// PullAs says how images are pulled. It is for tests, as WriteInOrder.
func (c *Core) PullAs(pulling *executor.Pulling) { c.Executor.PullAs(pulling) }

// Measure says what the reconciler measures with.
func (c *Core) Measure(m metrics.Metrics) {
	c.Metrics, c.Executor.Metrics = m.Rollouts.Of(c.Kind), m.Moves.Of(c.Kind)
}

// LookWith has the reconciler inspect workloads with what it is given.
func (c *Core) LookWith(eyes workload.Eyes) {
	c.Capabilities = eyes.Capabilities
	c.Executor.PullAs(eyes.Pulling)
}

// ControllerName names the controller of a kind in logs, metrics and events.
func ControllerName(kind schema.GroupVersionKind) string {
	return strings.ToLower(kind.Kind)
}

// Controller configures the reconciler by options, and begins its controller: of is an empty
// object of the kind, of which interest says what events matter, and adopters maps a pod without
// a controller to the workloads that may have to adopt it.
func (c *Core) Controller(mgr ctrl.Manager, options Options, of client.Object, interest predicate.Predicate, adopters handler.MapFunc) *ctrl.Builder {
	c.Capabilities, c.NamespaceScope = options.Capabilities, options.NamespaceScope
	c.Executor.DrainPause, c.Executor.Turns = executor.DrainPause, cmp.Or(options.Turns, c.Executor.Turns)
	c.Executor.Puller.WithoutNodes = options.NamespaceScope
	c.Executor.PullAs(cmp.Or(options.Pulling, c.Executor.Puller.Pulling))
	draining := func(ctx context.Context, slice client.Object) []reconcile.Request {
		return workload.Draining(ctx, c.Client, c.Kind, slice)
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(ControllerName(c.Kind)).
		For(of, builder.WithPredicates(interest)).
		Owns(&corev1.Pod{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(adopters)).
		Watches(&discoveryv1.EndpointSlice{}, handler.EnqueueRequestsFromMapFunc(draining)).
		WithOptions(workload.ControllerOptions(options.MaxConcurrentReconciles))
}
