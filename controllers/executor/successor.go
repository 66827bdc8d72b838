// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// successors asks, where a plan evicts pods for their sizes, whether the API server would
// accept new ones in their places. One answer is for all: they are of one template.
type successors struct {
	executor *Executor
	known    *verdicts
	asked    bool
}

// keep marks all pods, if no new ones would be accepted, so that none is evicted, and
// reports whether the plan is to be made again for that.
func (s *successors) keep(ctx context.Context, w inplace.Workload, plan inplace.Plan, now time.Time) bool {
	i := slices.IndexFunc(plan.Moves, func(move inplace.Move) bool { return move.Step.Evict })
	if i < 0 || s.asked {
		return false
	}
	s.asked = true
	if s.known.successor == nil || !now.Before(s.known.successor.Until) {
		s.known.successor = s.executor.refusesSuccessor(ctx, plan.Moves[i], w.Target.Template, now)
	}
	for i := range w.Pods {
		w.Pods[i].Irreplaceable = s.known.successor
	}
	return s.known.successor != nil
}

// refusesSuccessor returns why the API server does not accept a new pod in the place of
// one that a move evicts; nil if it does. Without an answer, the pod stays for now.
func (e *Executor) refusesSuccessor(ctx context.Context, move inplace.Move, template *inplace.Template, now time.Time) *inplace.Refusal {
	refused := &inplace.Refusal{Reason: move.Step.Reason, Until: now.Add(refusalPeriod)}
	if isOfQuota(move.Step.Message) {
		refused.Message = "the quota has no room for it"
		return refused
	}
	successor, err := inplace.Successor(move.Pod, template)
	if err == nil {
		err = e.client.Create(ctx, successor, client.DryRunAll, client.DisableReadYourWritesConsistency)
	}
	// The quota of a namespace still counts the pod that is to go.
	if err == nil || IsNoDryRun(err) || apierrors.IsForbidden(err) && isOfQuota(err.Error()) || errors.Is(err, context.Canceled) {
		return nil
	}
	refused.Message = Shorten(ServerWords(err))
	return refused
}

// isOfQuota reports whether the API server refused something since a ResourceQuota has no
// room for it. It has no code of its own for that.
func isOfQuota(words string) bool { return strings.Contains(words, "exceeded quota") }
