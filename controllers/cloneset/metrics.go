// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"github.com/insitu-dev/insitu/controllers/workload"
)

// rollout returns what the metrics tell of the reconciliation, as the status does.
func (s *scope) rollout() workload.Rollout {
	rollout := s.Rollout(conditions{s})
	rollout.Claims, rollout.Incomplete = s.claimSteps, int(s.counts.Replicas) != s.scaled.wanted || len(s.outgoing) > 0
	return rollout
}
