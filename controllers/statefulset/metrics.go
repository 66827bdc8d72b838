// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Measure says what the reconciler measures with. It is called before the first
// Reconcile; without it, nothing is measured.
func (r *Reconciler) Measure(m metrics.Metrics) {
	r.metrics, r.executor.Metrics, r.recreate.Metrics = m.Rollouts.Of(kind), m.Moves.Of(kind), m.Recreations
}

// rollout returns what the metrics tell of the reconciliation, as the status does.
func (s *scope) rollout() workload.Rollout {
	rollout := s.Rollout()
	rollout.Claims, rollout.Incomplete = s.claimSteps, len(s.members) != s.replicas || len(s.condemned) > 0
	conditions := s.set.Status.Conditions
	if stalled := meta.FindStatusCondition(conditions, appsv1beta1.ConditionStalled); stalled != nil && stalled.Status == metav1.ConditionTrue {
		rollout.Stalled = stalled.Reason
	}
	if ready := meta.FindStatusCondition(conditions, appsv1beta1.ConditionReady); ready != nil && ready.Status != metav1.ConditionTrue {
		rollout.Since = ready.LastTransitionTime.Time
	}
	return rollout
}
