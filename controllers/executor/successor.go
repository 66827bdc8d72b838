// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/inplace"
)

// successors asks, where a plan evicts or deletes pods to have them made again, whether the
// API server would accept new ones in their places: once for all pods that come back alike.
type successors struct {
	executor *Executor
	owner    client.Object
	workload inplace.Workload
	known    *verdicts
	// answers holds what was answered about evicted pods, by revision, nil for acceptance,
	// and asked the pods that were asked about.
	answers map[string]*inplace.Refusal
	asked   sets.Set[types.UID]
}

func newSuccessors(e *Executor, owner client.Object, w inplace.Workload, known *verdicts) *successors {
	return &successors{
		executor: e, owner: owner, workload: w, known: known,
		answers: map[string]*inplace.Refusal{}, asked: sets.New[types.UID](),
	}
}

// keep marks the pods that a plan evicts or deletes, and in whose places no new ones would be
// accepted. It reports whether the plan is to be made again for that.
func (s *successors) keep(ctx context.Context, pods []inplace.PodFacts, plan inplace.Plan, now time.Time) bool {
	marked := false
	for _, move := range plan.Moves {
		if !move.Step.Evict && !move.Step.Deletes() {
			continue
		}
		i := slices.IndexFunc(plan.Pods, func(state inplace.PodState) bool { return state.Pod.UID == move.Pod.UID })
		switch {
		case pods[i].Irreplaceable != nil:
		case move.Step.Evict && !s.asked.Has(move.Pod.UID):
			s.asked.Insert(move.Pod.UID)
			pods[i].Irreplaceable = s.refusal(ctx, &pods[i], move.Step, now)
			marked = marked || pods[i].Irreplaceable != nil
		case !move.Step.Evict && s.workload.Current != nil:
			if refused := s.refusalToRecreate(ctx, &pods[i], now); refused != nil {
				s.keepAll(pods, plan, s.workload.ComesBackAt(pods[i]).Name, refused)
				marked = true
			}
		}
	}
	return marked
}

// keepAll marks all pods that are to be deleted and would come back at a revision.
func (s *successors) keepAll(pods []inplace.PodFacts, plan inplace.Plan, revision string, refused *inplace.Refusal) {
	for i := range pods {
		if plan.Pods[i].Step.Deletes() && s.workload.ComesBackAt(pods[i]).Name == revision {
			pods[i].Irreplaceable = refused
		}
	}
}

// refusal returns why there would be no new pod in the place of one that is to be evicted for
// its sizes; nil if there would.
func (s *successors) refusal(ctx context.Context, facts *inplace.PodFacts, step inplace.Step, now time.Time) *inplace.Refusal {
	if isOfQuota(step.Message) {
		return &inplace.Refusal{Reason: step.Reason, Message: "the quota has no room for it", Until: now.Add(refusalPeriod)}
	}
	revision := s.workload.ComesBackAt(*facts)
	answer, known := s.answers[revision.Name]
	if !known {
		if err := s.executor.refusesSuccessor(ctx, facts.Pod, revision); err != nil {
			answer = &inplace.Refusal{Reason: inplace.ReasonResizeDenied, Message: Shorten(ServerWords(err)), Until: now.Add(refusalPeriod)}
		}
		s.answers[revision.Name] = answer
	}
	return answer
}

// refusalToRecreate returns why there would be no new pod in the place of one that is to be
// recreated; nil if there would. The API server is asked once for all pods that come back at
// a revision, and again when its answer is old.
func (s *successors) refusalToRecreate(ctx context.Context, facts *inplace.PodFacts, now time.Time) *inplace.Refusal {
	revision := s.workload.ComesBackAt(*facts)
	known := s.known.successors[revision.Name]
	if now.Before(known.until) {
		return known.refused
	}
	err := s.executor.refusesSuccessor(ctx, facts.Pod, revision)
	refused := newRecreationRefusal(facts.Pod, err, now)
	if refused != nil && refused.Denied && (known.refused == nil || !known.refused.Denied) {
		s.executor.report(s.owner, facts.Pod, &event{corev1.EventTypeWarning, refused.Reason, actionRecreate, refused.Message})
	}
	s.known.successors[revision.Name] = successorVerdict{refused: refused, until: now.Add(refusalPeriod)}
	return refused
}

// newRecreationRefusal says why a pod stays that is to be recreated: what the API server said,
// or that it did not answer. The name that it made up for the new pod is another one each time.
func newRecreationRefusal(pod *corev1.Pod, err error, now time.Time) *inplace.Refusal {
	until := now.Add(refusalPeriod)
	made := regexp.MustCompile(regexp.QuoteMeta(pod.Name) + `-[a-z0-9]*`)
	words := func() string { return Shorten(made.ReplaceAllLiteralString(ServerWords(err), pod.Name)) }
	switch {
	case err == nil:
		return nil
	case IsRefusal(err):
		return &inplace.Refusal{
			Reason: inplace.ReasonRecreationDenied, Denied: true, Until: until,
			Message: "it is to be recreated, and the API server would not accept a new pod: " + words(),
		}
	default:
		return &inplace.Refusal{
			Reason: inplace.ReasonAdmissionUnknown, Until: until,
			Message: "the API server has not answered yet whether it would accept a new pod: " + words(),
		}
	}
}

// refusesSuccessor returns why the API server does not accept a new pod at a revision in the
// place of another; nil if it does.
func (e *Executor) refusesSuccessor(ctx context.Context, pod *corev1.Pod, revision inplace.Revision) error {
	successor, err := inplace.Successor(pod, revision)
	if err != nil {
		return err
	}
	fits := func(err error) bool { return !isLarger(successor, pod) || hasRoomThen(err.Error(), pod) }
	err = e.client.Create(ctx, successor.DeepCopy(), client.DryRunAll, client.DisableReadYourWritesConsistency)
	// The quota of a namespace still counts the pod that is to go.
	hasRoom := IsOfQuota(err) && fits(err)
	// A user of the plugin may have no right to create pods.
	mayNotAsk := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
	if hasRoom || mayNotAsk || IsNoDryRun(err) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
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

// quotaWords are what the API server says of a quota that has no room: the amounts that are
// requested, used and allowed of what there is too little of.
var quotaWords = regexp.MustCompile(`exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)`)

// hasRoomThen reports whether a quota, by the words in which it was refused, has room for a
// pod when another one is gone. It has none as far as the words do not tell.
func hasRoomThen(words string, gone *corev1.Pod) bool {
	found := quotaWords.FindAllStringSubmatch(words, -1)
	if len(found) == 0 {
		return false
	}
	for _, quota := range found {
		requested, used, limited := amountsIn(quota[1]), amountsIn(quota[2]), amountsIn(quota[3])
		for name, amount := range requested {
			after := used[name]
			after.Add(amount)
			after.Sub(countedOf(gone, name))
			if limit := limited[name]; after.Cmp(limit) > 0 {
				return false
			}
		}
	}
	return true
}

// amountsIn reads amounts as a quota writes them: "limits.cpu=2,pods=3".
func amountsIn(words string) map[corev1.ResourceName]quantity.Quantity {
	amounts := map[corev1.ResourceName]quantity.Quantity{}
	for word := range strings.SplitSeq(strings.TrimSuffix(words, ","), ",") {
		name, value, _ := strings.Cut(word, "=")
		if amount, err := quantity.ParseQuantity(value); err == nil {
			amounts[corev1.ResourceName(name)] = amount
		}
	}
	return amounts
}

// countedOf returns what a quota counts of a pod under a name.
func countedOf(pod *corev1.Pod, name corev1.ResourceName) quantity.Quantity {
	options := resource.PodResourcesOptions{}
	requests, limits := resource.PodRequests(pod, options), resource.PodLimits(pod, options)
	switch {
	case name == corev1.ResourcePods || name == "count/pods":
		return quantity.MustParse("1")
	case strings.HasPrefix(string(name), "limits."):
		return limits[corev1.ResourceName(strings.TrimPrefix(string(name), "limits."))]
	default:
		return requests[corev1.ResourceName(strings.TrimPrefix(string(name), "requests."))]
	}
}
