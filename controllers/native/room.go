// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"slices"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// neverRoom says what users can do when pods wait for room that there will never be.
const neverRoom = "maxUnavailable is 0, so no pod may be restarted, and the policy InPlaceOnly makes none in its place: " +
	"allow 1 pod to be unavailable, set the policy InPlaceIfPossible, or go back"

// nameNoRoom tells of pods that wait for room that there will never be. Nothing but the user
// ends that. One of the pods calls for them, since there is one thing to do for all.
func (s *scope) nameNoRoom() {
	if s.options.policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType || s.maxUnavailable() > 0 || s.options.paused || s.spec.surges {
		return
	}
	available := 0
	for _, pod := range s.Plan.Pods {
		if pod.Available {
			available++
		}
	}
	if len(s.Plan.Moves) > 0 || available < len(s.Plan.Pods) || available > s.spec.replicas {
		return // something is in work that ends, or a pod more gives room
	}
	state, blockers := inplace.Stuck, slices.Clone(s.Plan.Blockers)
	for i := range blockers {
		if blocker := &blockers[i]; blocker.Reason == inplace.ReasonBudget {
			blocker.State, blocker.Reason, blocker.Message = state, inplace.ReasonNoRoom, neverRoom
			state = inplace.Waiting
		}
	}
	s.Plan = s.Plan.Reworded(blockers)
}
