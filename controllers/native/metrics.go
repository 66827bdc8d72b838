// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/metrics"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Measure says what the reconciler measures with. It is called before the first
// Reconcile; without it, nothing is measured.
func (r *Reconciler) Measure(m metrics.Metrics) {
	kind := r.kind.groupVersionKind()
	r.metrics, r.executor.Metrics = m.Rollouts.Of(kind), m.Moves.Of(kind)
	r.metrics.MayRelease(reasonUpdated, reasonReleased, inplace.ReasonCannotDrain, reasonHoldLost, reasonHoldTimedOut, reasonInvalidOptions)
}

// rollout returns what the metrics tell of the reconciliation, as the report does.
func (s *scope) rollout(status native.Status) workloads.Rollout {
	return workloads.Rollout{
		Planned: s.Planned, Plan: s.Plan, Failed: s.Result.Failed, Revision: status.Revision,
		Incomplete: len(s.condemned) > 0 || s.spec.replicas > len(s.Plan.Pods),
		Stalled:    s.stalledReason(status.State), Since: status.ProgressTime.Time,
	}
}

// rolloutAtEnd returns what the metrics tell of a workload whose hold ends: nothing
// more, but for what came of the pods.
func (s *scope) rolloutAtEnd() workloads.Rollout {
	rollout := workloads.Rollout{Planned: s.Planned, Plan: s.Plan, IsOver: true}
	if s.target != nil {
		rollout.Revision = s.target.Name
	}
	return rollout
}

// stalledReason returns why an update needs a user; empty if it does not.
func (s *scope) stalledReason(state native.State) string {
	switch state {
	case native.Stalled:
		if stall := workloads.FindStall(s.Plan, s.Result.Errors()); s.failure == nil && stall.Stalled {
			return stall.Reason
		}
		return string(state)
	case native.InvalidOptions, native.ProgressDeadlineExceeded:
		return string(state)
	case native.Updating, native.Paused, native.PartitionReached:
		return ""
	default:
		return ""
	}
}
