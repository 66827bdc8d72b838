// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package gates lets pods serve that no controller of ours updates in place. It opens the
// readiness gates of pods of Deployments, StatefulSets and DaemonSets of Kubernetes, and of
// ReplicaSets without a Deployment, and ends the drain of any pod whose workload is not
// ours or is gone.
//
// While a workload is held for an update, its controller says when a pod may serve
// (package native). What is wrong with the workload may keep it from that. So a new pod is
// opened here when its containers have been ready for a minute. At any other time no controller
// would: neither for a new pod, which is
// not ready before its gate was opened once, nor for one that was out of service when
// the update was given up. Such a pod may be in the middle of a change; it is opened
// when its containers are those that it is to have.
//
// Each reconciliation is about one pod. At rest there is none: a pod whose gates are
// open causes neither reads nor writes.
package gates

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// What this needs beside the reads that the cache is for: the condition of a gate is
// in the status of the pod.
//
// +kubebuilder:rbac:groups="",resources=pods/status,verbs=patch

// unfinishedDelay is when a pod is looked at again whose last change is not complete.
const unfinishedDelay = 2 * time.Second

// heldPatience is how long the containers of a new pod of a held workload are ready before
// its gates are opened here.
const heldPatience = time.Minute

// Reconciler opens gates of pods.
type Reconciler struct {
	// ServesRequests is true where the manager has the controller of ContainerRecreateRequests,
	// which lets the pods serve that it has taken out of service.
	ServesRequests bool

	// client reads from the cache, which shows our own writes, see Add.
	client client.Client
	// live reads from the API server.
	live  client.Reader
	clock clock.PassiveClock
}

// NewReconciler returns a Reconciler. The client reads from a cache with the options
// and indexes of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency), live from the API server.
func NewReconciler(c client.Client, live client.Reader, clock clock.PassiveClock) *Reconciler {
	return &Reconciler{client: c, live: live, clock: clock}
}

// Reconcile opens the gates of one pod, unless its workload is held.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pod := &corev1.Pod{}
	if err := r.client.Get(ctx, request.NamespacedName, pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if r.ServesRequests && inplace.IsMarkedNotReady(pod) && inplace.RecreateRequestOf(pod) != nil {
		return ctrl.Result{}, nil // package recreaterequest lets it serve
	}
	var requeue workload.Requeue
	step := nextStep(pod)
	if step == nil {
		result, err := r.endDrain(ctx, pod)
		return result, client.IgnoreNotFound(err)
	}
	held, err := isHeld(ctx, r.client, pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if held {
		if left, may := untilOpened(pod, r.clock.Now()); !may || left > 0 {
			return ctrl.Result{RequeueAfter: left}, nil
		}
	}
	if held, err = r.isHeldLive(ctx, pod); err != nil {
		return ctrl.Result{}, err
	}
	if held {
		requeue.AfterConflict() // the cache may never show a hold that ends soon
		return requeue.Result(), nil
	}
	if inplace.IsMarkedNotReady(pod) && !inplace.Observe(pod, r.clock.Now()).Complete {
		// Its containers may be about to be stopped: it would get traffic until then.
		return ctrl.Result{RequeueAfter: unfinishedDelay}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Opening gates of pod", "note", step.Message)
	err = executor.SetReadiness(ctx, r.client, pod, *step, r.clock.Now())
	if apierrors.IsConflict(err) {
		requeue.AfterConflict()
	}
	return requeue.Result(), client.IgnoreNotFound(workload.IgnoreConflict(err))
}

// nextStep returns the step that opens the gates of a pod of a kind of Kubernetes;
// nil if there is nothing to open, or it is not for us to do so.
func nextStep(pod *corev1.Pod) *inplace.Step {
	if !isOfKubernetes(pod) {
		return nil
	}
	return inplace.Opening(pod)
}

// untilOpened returns in how long the gates of a pod of a held workload are opened, and
// whether they may be at all: the pod has never served, no change of it is under way, and its
// containers are ready.
func untilOpened(pod *corev1.Pod, now time.Time) (left time.Duration, may bool) {
	ready := containersReady(pod)
	if ready == nil || inplace.IsMarkedNotReady(pod) || !inplace.Observe(pod, now).Complete {
		return 0, false
	}
	return max(ready.LastTransitionTime.Add(heldPatience).Sub(now), 0), true
}

// containersReady returns the condition which says that all containers of a pod are ready;
// nil if they are not.
func containersReady(object client.Object) *corev1.PodCondition {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil
	}
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.ContainersReady && c.Status == corev1.ConditionTrue
	})
	if i < 0 {
		return nil
	}
	return &pod.Status.Conditions[i]
}

// isHeldLive reports whether the workload of a pod is held that is not by the cache,
// which may be late. To open a pod that never served does no harm then: it is what an
// update would begin with. But a pod that was taken out of service may be waiting for
// the moment in which no client uses it any more, so the API server is asked about it.
func (r *Reconciler) isHeldLive(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if !inplace.IsMarkedNotReady(pod) {
		return false, nil
	}
	return isHeld(ctx, r.live, pod)
}
