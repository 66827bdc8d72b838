// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
)

// What is done to pods and revisions needs what package statefulset says. Which nodes run a pod is
// told by their labels and taints, and whether pods can be changed there by their conditions.
//
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/status,verbs=patch
// +kubebuilder:rbac:groups=apps.kruise.io,resources=daemonsets/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

var kind = appsv1beta1.DaemonSetKind

// How long a failed pod stays before another one is made on its node: twice as long each time, as
// with DaemonSets of Kubernetes.
const (
	firstBackoff = time.Second
	maxBackoff   = 15 * time.Minute
)

// Reconciler reconciles DaemonSets.
type Reconciler struct {
	engine.Core
	// random returns a string of that many characters, for names of pods.
	random func(length int) string
	// failed is how long failed pods stay, by set and node. It is forgotten with the manager.
	failed *flowcontrol.Backoff
}

// NewReconciler returns a Reconciler, see [engine.NewCore]. random gives the ends of the names of
// new pods: lower case letters and digits.
func NewReconciler(
	c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock, random func(length int) string,
) *Reconciler {
	failed := flowcontrol.NewBackOff(firstBackoff, maxBackoff)
	failed.Clock = told{now: clock}
	return &Reconciler{engine.NewCore(kind, c, live, recorder, clock), random, failed}
}

// told is a clock that is asked for the time only.
type told struct {
	clock.RealClock
	now clock.PassiveClock
}

func (t told) Now() time.Time { return t.now.Now() }

func (t told) Since(then time.Time) time.Duration { return t.now.Since(then) }

// Reconcile brings the pods of one DaemonSet one step nearer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	return r.shell().Reconcile(ctx, request.NamespacedName, &appsv1beta1.DaemonSet{})
}

func (r *Reconciler) shell() *engine.Shell[*appsv1beta1.DaemonSet, *scope] {
	return &engine.Shell[*appsv1beta1.DaemonSet, *scope]{
		Core:   &r.Core,
		Begin:  func(set *appsv1beta1.DaemonSet) *scope { return newScope(set, r.Clock.Now()) },
		Report: r.patchStatus,
		Phases: []engine.Phase[*scope]{
			r.mayServe,
			r.adopt,
			r.observe,
			engine.Common[*scope](r.Release),
			r.ensureRevisions,
			r.place,
			r.update,
			r.truncateHistory,
		},
	}
}
