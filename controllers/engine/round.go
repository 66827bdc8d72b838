// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package engine holds what the reconciliations of all kinds of workloads have in common:
// what is known of one, and the way from its plan to its status.
package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Round is one reconciliation of one workload. What a kind knows besides embeds it.
type Round struct {
	// Owner is the workload.
	Owner workload.Owner
	// Now is when the reconciliation began.
	Now time.Time
	// CannotResize is true when the API server does not serve pods/resize.
	CannotResize bool
	// Selector is spec.selector, which Adopt reads. Pods are those of the workload, and Strays
	// those that its selector selects no longer, as ObservePods found them.
	Selector     labels.Selector
	Pods, Strays []*corev1.Pod
	// Pullers are the pods that pull images for the Pods.
	Pullers []*corev1.Pod
	// Revisions are those of the workload; their Update is nil until they are known.
	Revisions workload.Revisions

	// Asked is what the planner was told, and Plan what came of it; both are valid where
	// Planned is true. Result is what came of the moves.
	Asked   inplace.Workload
	Plan    inplace.Plan
	Planned bool
	Result  executor.Result
	// tried is what came of dry runs, which is of no matter if no move is made.
	tried executor.Result

	// Scaling and Updating are what went wrong with single pods. It does not keep others
	// from being worked on.
	Scaling, Updating workload.Failures
	// Requeue is when to reconcile again if no event comes before.
	Requeue workload.Requeue
}

// Decide plans the next steps of the pods, by what the API server says to them. others are
// blockers that the planner does not know of.
func (r *Round) Decide(ctx context.Context, e *executor.Executor, asked inplace.Workload, others ...inplace.Blocker) {
	asked.Pullers, asked.Target.Pull = r.Pullers, e.PullPolicyOf(asked.Target.Pull)
	r.Asked, r.Planned = asked, true
	r.Plan, r.tried = e.Plan(ctx, r.Owner.Object, asked, r.Now, others...)
	if !r.Plan.Recheck.IsZero() {
		r.Requeue.Within(max(r.Plan.Recheck.Sub(r.Now), time.Millisecond))
	}
}

// Carry carries out moves of the plan.
func (r *Round) Carry(ctx context.Context, e *executor.Executor, moves []inplace.Move) {
	r.note(e.Run(ctx, r.Owner.Object, r.Asked.Target.Revision.Name, moves))
}

// CarryHandedOver carries out the moves of the plan. Pods that are to be recreated are handed over
// before. An error says that nothing was done.
func (r *Round) CarryHandedOver(ctx context.Context, e *executor.Executor, handOver executor.HandOver) error {
	result, err := e.RunHandedOver(ctx, r.Owner.Object, r.Asked.Target.Revision.Name, r.Plan.Moves, handOver)
	if err != nil {
		return err
	}
	r.note(result)
	return nil
}

// note notes what became of moves.
func (r *Round) note(moved executor.Result) {
	moved, r.tried = r.tried.With(moved), executor.Result{}
	if moved.IsUnfinished() {
		r.Requeue.AfterConflict()
	}
	r.Result = r.Result.With(moved)
	r.Updating.Errs = append(r.Updating.Errs, moved.Errors()...)
}

// Inspection returns what was decided, for who looks at it. failure is what ended the round.
func (r *Round) Inspection(failure error) workload.Inspection {
	found := workload.Inspection{
		Workload: r.Asked, Plan: r.Plan, Planned: r.Planned, Failure: failure, Failed: r.Result.Failed, History: r.Revisions.History,
	}
	if r.Revisions.Update != nil {
		found.Update, found.Current = r.Revisions.Update.Name(), r.Revisions.Current.Name()
	}
	return found
}

// End returns the result of a round that err has ended, if it is not nil.
func (r *Round) End(ctx context.Context, err error) (ctrl.Result, error) {
	// What failed with single pods is no error of the reconciliation: the wait
	// after an error grows to minutes, and other pods may be in their grace period.
	if failures := slices.Concat(r.Scaling.Errs, r.Updating.Errs); len(failures) > 0 {
		ctrl.LoggerFrom(ctx).Error(errors.Join(failures...), "Failed to move pods")
	}
	if lasting := workload.IgnoreConflict(err); lasting != nil {
		return ctrl.Result{}, lasting
	}
	if err != nil {
		r.Requeue.AfterConflict()
	}
	r.Requeue.After(r.Scaling, r.Updating)
	return r.Requeue.Result(), nil
}
