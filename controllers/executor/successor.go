// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// successors asks, where a plan evicts pods for their sizes, whether the API server
// would accept new ones in their places: once for all pods that come back alike.
type successors struct {
	executor *Executor
	target   *inplace.Template
	// answers holds what was answered about templates, nil for acceptance, and asked the
	// pods that were asked about.
	answers map[*inplace.Template]*inplace.Refusal
	asked   sets.Set[types.UID]
}

func newSuccessors(e *Executor, target *inplace.Template) *successors {
	return &successors{executor: e, target: target, answers: map[*inplace.Template]*inplace.Refusal{}, asked: sets.New[types.UID]()}
}

// keep marks the pods that a plan evicts, and in whose places no new ones would be
// accepted. It reports whether the plan is to be made again for that.
func (s *successors) keep(ctx context.Context, pods []inplace.PodFacts, plan inplace.Plan, now time.Time) bool {
	marked := false
	for _, move := range plan.Moves {
		if !move.Step.Evict || s.asked.Has(move.Pod.UID) {
			continue
		}
		s.asked.Insert(move.Pod.UID)
		i := slices.IndexFunc(pods, func(facts inplace.PodFacts) bool { return facts.Pod.UID == move.Pod.UID })
		pods[i].Irreplaceable = s.refusal(ctx, &pods[i], move.Step, now)
		marked = marked || pods[i].Irreplaceable != nil
	}
	return marked
}

// refusal returns why there would be no new pod in the place of one; nil if there would.
func (s *successors) refusal(ctx context.Context, facts *inplace.PodFacts, step inplace.Step, now time.Time) *inplace.Refusal {
	if isOfQuota(step.Message) {
		return &inplace.Refusal{Reason: step.Reason, Message: "the quota has no room for it", Until: now.Add(refusalPeriod)}
	}
	template := s.target
	if facts.Held && facts.From != nil {
		template = facts.From.Template // the partition has it come back as it was
	}
	answer, known := s.answers[template]
	if !known {
		answer = s.executor.refusesSuccessor(ctx, facts.Pod, template, now)
		s.answers[template] = answer
	}
	return answer
}

// refusesSuccessor returns why the API server does not accept a new pod of a template in
// the place of another; nil if it does. Without an answer, the pod stays for now.
func (e *Executor) refusesSuccessor(ctx context.Context, pod *corev1.Pod, template *inplace.Template, now time.Time) *inplace.Refusal {
	successor, err := inplace.Successor(pod, template)
	needsNoMore := err == nil && !isLarger(successor, pod)
	if err == nil {
		err = e.client.Create(ctx, successor, client.DryRunAll, client.DisableReadYourWritesConsistency)
	}
	// The quota of a namespace still counts the pod that is to go.
	hasRoom := needsNoMore && IsOfQuota(err)
	// A user of the plugin may have no right to create pods.
	mayNotAsk := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
	if err == nil || hasRoom || mayNotAsk || IsNoDryRun(err) || errors.Is(err, context.Canceled) {
		return nil
	}
	return &inplace.Refusal{Reason: inplace.ReasonResizeDenied, Message: Shorten(ServerWords(err)), Until: now.Add(refusalPeriod)}
}

// isLarger reports whether a pod asks for more of anything than another one has.
func isLarger(pod, than *corev1.Pod) bool {
	options := resource.PodResourcesOptions{}
	for _, pair := range [][2]corev1.ResourceList{
		{resource.PodRequests(pod, options), resource.PodRequests(than, options)},
		{resource.PodLimits(pod, options), resource.PodLimits(than, options)},
	} {
		for name, amount := range pair[0] {
			if has := pair[1][name]; amount.Cmp(has) > 0 {
				return true
			}
		}
	}
	return false
}

// IsOfQuota reports whether the API server refused something since a ResourceQuota has no
// room for it. It has no code of its own for that.
func IsOfQuota(err error) bool { return apierrors.IsForbidden(err) && isOfQuota(err.Error()) }

func isOfQuota(words string) bool { return strings.Contains(words, "exceeded quota") }
