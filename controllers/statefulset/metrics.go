// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"github.com/insitu-dev/insitu/controllers/metrics"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Measure says what the reconciler measures with. It is called before the first
// Reconcile; without it, nothing is measured.
func (r *Reconciler) Measure(m metrics.Metrics) {
	r.Core.Measure(m)
	r.recreate.Metrics = m.Recreations
}

// rollout returns what the metrics tell of the reconciliation, as the status does.
func (s *scope) rollout() workload.Rollout {
	rollout := s.Rollout(s.conditions())
	rollout.Claims, rollout.Incomplete = s.claimSteps, len(s.members) != s.replicas || len(s.condemned) > 0
	return rollout
}
