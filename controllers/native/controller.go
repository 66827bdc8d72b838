// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package native updates the pods of Deployments, StatefulSets and DaemonSets of
// Kubernetes in place.
//
// Their own controllers go on doing what they do. For the time of an update they are
// kept from recreating pods: admission policies (config/policies) hold a workload
// with the label insitu.dev/update-policy in the very write that changes its
// template. So no pod that serves is touched, and nothing is lost, while this manager is down.
//
// A reconciliation acts on held workloads only. It observes everything once (scope),
// plans with the same engine as all kinds (inplace.MakePlan), writes what was planned
// and, when all pods are updated, what the kind's own controller needs to see in order
// to take them for updated. Then it asks for the release. What cannot be made in place
// is released at once: Kubernetes recreates the pods, as it would have without us.
package native

import (
	"cmp"
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/executor"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// A workload is patched to end its hold, and to say in an annotation how far its
// update is. ReplicaSets are what the history of a Deployment consists of: the one of
// the updated pods gets the new template, an empty one keeps the old. What is done to
// pods and revisions needs what package statefulset says.
//
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=apps,resources=replicasets,verbs=get;list;watch;create;patch
//
// What is made for a Deployment blocks its deletion in the foreground, as everything
// that a controller owns; where admission asks for it, that takes this right.
//
// +kubebuilder:rbac:groups=apps,resources=deployments/finalizers,verbs=update

// Reconciler reconciles the workloads of one kind.
type Reconciler struct {
	// Capabilities tells what the API server can do; everything, if it is nil. It
	// is set before the first Reconcile.
	Capabilities *workloads.Capabilities

	kind Kind
	// client reads from the cache, which shows our own writes, see Add.
	client client.Client
	// live reads from the API server.
	live     client.Reader
	recorder events.EventRecorder
	clock    clock.PassiveClock
	executor *executor.Executor
	metrics  *workloads.KindMetrics
	patience patience
}

// NewReconciler returns a Reconciler of a kind. The client reads from a cache with the
// indexes of package podcache that waits for its own writes
// (client.CacheOptions.EnableReadYourWritesConsistency), live from the API server.
func NewReconciler(kind Kind, c client.Client, live client.Reader, recorder events.EventRecorder, clock clock.PassiveClock) *Reconciler {
	carriesOut := executor.New(c, recorder, clock)
	carriesOut.Puller = &executor.Puller{Kind: kind.groupVersionKind(), Live: live, Pulling: &executor.Pulling{}}
	return &Reconciler{
		kind: kind, client: c, live: live, recorder: recorder, clock: clock, executor: carriesOut,
	}
}

// WriteInOrder makes the reconciler write to one pod after the other, always in the
// same order. It is for tests, and is called before the first Reconcile.
func (r *Reconciler) WriteInOrder() {
	r.executor.Parallelism = 1
}

// PullAs says how images are pulled. It is for tests, as WriteInOrder.
func (r *Reconciler) PullAs(pulling *executor.Pulling) { r.executor.PullAs(pulling) }

// Reconcile brings the pods of one held workload one step nearer to its template. One
// that is not held is left alone, but for what a hold that was ended early has left.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	obj := r.kind.newObject()
	if err := r.client.Get(ctx, request.NamespacedName, obj); err != nil {
		r.metrics.ForgetIfGone(request.NamespacedName, err)
		r.patience.forget(request.NamespacedName)
		if apierrors.IsNotFound(err) {
			err = r.deletePullersOf(ctx, request.NamespacedName)
		}
		return ctrl.Result{}, err
	}
	held := obj.GetLabels()[native.HeldLabel]
	if held == "" || held == native.Release || obj.GetDeletionTimestamp() != nil {
		r.metrics.Forget(request.NamespacedName)
		r.patience.forget(request.NamespacedName)
	}
	if held == "" || obj.GetDeletionTimestamp() != nil {
		if err := executor.DeletePullers(ctx, r.client, obj); err != nil {
			return ctrl.Result{}, err
		}
	}
	if obj.GetDeletionTimestamp() != nil {
		return ctrl.Result{}, nil
	}
	s := newScope(obj, r.kind, r.clock.Now())
	if held == "" {
		return s.End(ctx, s.tidy(ctx, r, s))
	}
	s.CannotResize = !r.Capabilities.CanResize(ctx)
	if held == native.Release {
		return s.End(ctx, r.unhold(ctx, s))
	}
	err := r.advance(ctx, s)
	if s.failure = workloads.IgnoreConflict(err); s.ending == nil {
		if expireErr := r.expire(ctx, s); s.ending != nil {
			err, s.failure = expireErr, workloads.IgnoreConflict(expireErr)
		}
	}
	if reportErr := r.report(ctx, s); reportErr != nil {
		err = errors.Join(err, reportErr)
	}
	return s.End(ctx, err)
}

// advance lets the pods take their next steps, and ends the hold when they are done.
func (r *Reconciler) advance(ctx context.Context, s *scope) error {
	if !s.spec.isHeld {
		s.ending = lost(s)
		return r.release(ctx, s)
	}
	s.readOptions()
	if err := s.readTemplate(); err != nil {
		return err
	}
	if err := s.observe(ctx, r, s); err != nil {
		return err
	}
	if err := s.observePullers(ctx, r.client); err != nil {
		return err
	}
	if s.invalid != nil && !s.mustStop() && !s.goesBack() {
		if s.ending = unreadable(s); !r.staysHeld(ctx, s) {
			return r.release(ctx, s)
		}
	}
	if s.target == nil {
		return nil // the event of its revision brings us back
	}
	return r.update(ctx, s)
}

// update carries out the plan.
func (r *Reconciler) update(ctx context.Context, s *scope) error {
	s.Decide(ctx, r.executor, s.workloadFacts())
	s.nameNoRoom()
	s.nameNoNewPod()
	if s.ending = s.recreation(); s.ending != nil {
		if !r.staysHeld(ctx, s) {
			return r.release(ctx, s)
		}
		r.keep(ctx, s)
	}
	s.nameKept()
	if s.invalid == nil && s.kept == nil && s.isDone() {
		return r.finish(ctx, s)
	}
	s.Carry(ctx, r.executor, s.moves())
	return nil
}

// finish ends the hold of a workload whose pods are updated.
func (r *Reconciler) finish(ctx context.Context, s *scope) error {
	concluded, err := s.conclude(ctx, r, s)
	if err != nil || !concluded {
		return err
	}
	s.ending = updated(s)
	return r.release(ctx, s)
}

// isDone reports whether nothing is left to do to any pod: what is still to become
// ready is watched by Kubernetes, as after any rollout.
func (s *scope) isDone() bool {
	goes := func(pod *corev1.Pod) bool {
		return s.spec.surges && s.keeper != nil && !metav1.IsControlledBy(pod, s.keeper)
	}
	requested := s.onlyRequested()
	if slices.ContainsFunc(s.Plan.Moves, func(m inplace.Move) bool { return !goes(m.Pod) && !requested.Has(m.Pod.UID) }) || s.isKeptBack() {
		return false
	}
	for i, pod := range s.Plan.Pods {
		isOther := s.pods[i].Held
		switch {
		case goes(pod.Pod), requested.Has(pod.Pod.UID):
		case inplace.IsMarkedNotReady(pod.Pod), !isOther && inplace.RevisionOf(pod.Pod) != s.target.Name:
			return false
		case !pod.Proved && pod.Pod.Spec.NodeName != "":
			return false // its kubelet may have seen what the pod was before
		case pod.Step.Action != inplace.Wait, pod.Step.IsResize():
			return false
		}
	}
	return true
}

// onlyRequested returns the UIDs of the pods that serve where they are to be, and that nothing but a
// ContainerRecreateRequest has restarted. No hold is needed for that: package recreaterequest goes on
// after it.
func (s *scope) onlyRequested() sets.Set[types.UID] {
	found := sets.New[types.UID]()
	for i, pod := range s.Plan.Pods {
		isThere := pod.Proved && (s.pods[i].Held || inplace.RevisionOf(pod.Pod) == s.target.Name)
		if pod.Step.OnRequest && isThere && !inplace.IsMarkedNotReady(pod.Pod) {
			found.Insert(pod.Pod.UID)
		}
	}
	return found
}

// keeps returns how many pods the option partition keeps at their revision.
func (s *scope) keeps() int {
	count := 0
	for i, pod := range s.Plan.Pods {
		if s.options.partition != nil && s.pods[i].Held && !s.isOfOther(i) && !pod.Updated {
			count++
		}
	}
	return count
}

// isKeptBack reports whether the user keeps pods at their revision, by the option partition or
// by a pause: those that there are, and those of a Deployment that is scaled down to updated
// ones, and gets more later. With no replicas a hold ends: Kubernetes gives the next pods to
// the newest ReplicaSet.
func (s *scope) isKeptBack() bool {
	if s.keeps() > 0 {
		return true
	}
	if s.keeper == nil || s.isBack() || s.spec.replicas == 0 {
		return false
	}
	return s.options.paused || s.options.partition != nil && partitionOf(*s.options.partition, s.spec.replicas) > 0
}

// isWhole reports whether the pods are there that the ReplicaSet of the updated ones is to have.
func (s *scope) isWhole() bool {
	return s.keeper == nil || s.staying() >= int(ptr.Deref(s.keeper.Spec.Replicas, 1))
}

// isPartitionReached reports whether all pods are updated that the option partition does not
// keep.
func (s *scope) isPartitionReached(updated int) bool {
	keeps := s.keeps()
	return (keeps > 0 || s.isKeptBack() && s.isWhole()) && updated+keeps >= s.staying() && !s.hasWork()
}

// recreation returns why Kubernetes has to go on with the update; nil if it can be
// made in place, if Kubernetes would do nothing, or the user wants no recreation.
func (s *scope) recreation() *ending {
	switch {
	case s.options.policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType, s.options.paused, s.isBack():
		return nil
	case s.spec.recreates != "":
		return recreated(s, s.spec.recreates)
	}
	others, refused := 0, (*inplace.Step)(nil)
	for i := range s.Plan.Pods {
		pod := &s.Plan.Pods[i]
		step := pod.Step
		switch {
		case s.pods[i].Held || pod.Updated && step.Action == inplace.Wait:
		case step.Reason == inplace.ReasonCannotDrain:
			return undrained(s, step.Message) // Kubernetes deletes a pod only when others serve
		case step.Action == inplace.Recreate && step.Reason != inplace.ReasonSpecifiedDelete:
			refused = &step
		case s.maxUnavailable() == 0 && !s.spec.surges && step.LeadsToPatch && !step.OnRequest && step.Change.Restarts():
			return recreated(s, "maxUnavailable is 0, and containers are to be restarted: "+step.Message)
		default:
			others++
		}
	}
	// A single pod is deleted, and comes back at the new revision; not that of a
	// ReplicaSet, which has the old template still.
	if refused != nil && (others == 0 || s.kind == Deployment) {
		if s.pullsForNewPods() {
			return nil
		}
		return recreated(s, refused.Message)
	}
	return cmp.Or(s.blockedByOthers(), s.blockedByMissing())
}
