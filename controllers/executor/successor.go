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
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/storage/names"
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
	// evicted are the pods that were asked about since they are to be evicted.
	evicted sets.Set[types.UID]
}

func newSuccessors(e *Executor, owner client.Object, w inplace.Workload, known *verdicts) *successors {
	return &successors{executor: e, owner: owner, workload: w, known: known, evicted: sets.New[types.UID]()}
}

// keep marks the pods that a plan evicts or deletes, and in whose places no new ones would be
// accepted. It reports whether the plan is to be made again for that.
func (s *successors) keep(ctx context.Context, pods []inplace.PodFacts, plan inplace.Plan, now time.Time) bool {
	marked := false
	for _, move := range plan.Moves {
		if !move.Step.Evict && !move.Step.Deletes() {
			continue
		}
		i := indexOf(move.Pod, plan)
		switch {
		case i < 0 || pods[i].Irreplaceable != nil:
		case move.Step.Evict && !s.evicted.Has(move.Pod.UID):
			s.evicted.Insert(move.Pod.UID)
			pods[i].Irreplaceable = s.refusalToEvict(ctx, &pods[i], move.Step, now)
			marked = marked || pods[i].Irreplaceable != nil
		case !move.Step.Evict && !s.workload.Unasked:
			revision := s.workload.ComesBackAt(pods[i])
			if refused := s.refusalToRecreate(ctx, move.Pod, revision, now); refused != nil {
				s.keepAll(pods, plan, revision.Name, refused)
				marked = true
			}
		}
	}
	return marked
}

// indexOf returns the place of a pod in a plan; -1 if it is not one of those that are updated.
func indexOf(pod *corev1.Pod, plan inplace.Plan) int {
	return slices.IndexFunc(plan.Pods, func(state inplace.PodState) bool { return state.Pod.UID == pod.UID })
}

// keepAll marks all pods that are to be deleted and would come back at a revision.
func (s *successors) keepAll(pods []inplace.PodFacts, plan inplace.Plan, revision string, refused *inplace.Refusal) {
	for i := range pods {
		back := s.workload.ComesBackAt(pods[i])
		if plan.Pods[i].Step.Deletes() && back != nil && back.Name == revision {
			pods[i].Irreplaceable = refused
		}
	}
}

// refusalToEvict returns why there would be no new pod in the place of one that is to be
// evicted for its sizes; nil if there would.
func (s *successors) refusalToEvict(ctx context.Context, facts *inplace.PodFacts, step inplace.Step, now time.Time) *inplace.Refusal {
	revision := s.workload.ComesBackAt(*facts)
	switch {
	case revision == nil:
		return nil
	case isOfQuota(step.Message):
		return &inplace.Refusal{Reason: step.Reason, Message: "the quota has no room for it", Until: now.Add(refusalPeriod)}
	}
	answer := s.ask(ctx, facts.Pod, revision, now)
	if answer.err == nil {
		return nil
	}
	return &inplace.Refusal{Reason: inplace.ReasonResizeDenied, Message: Shorten(ServerWords(answer.err)), Until: answer.until}
}

// RefusalToRecreate returns why there would be no new pod at the target of a workload in the
// place of one that others are about to delete; nil if there would, or nothing is known.
func (e *Executor) RefusalToRecreate(ctx context.Context, owner client.Object, w inplace.Workload, pod *corev1.Pod, now time.Time) *inplace.Refusal {
	known := e.memory.verdictsOn(owner.GetUID(), w.Target.Name)
	return newSuccessors(e, owner, w, known).refusalToRecreate(ctx, pod, &w.Target.Revision, now)
}

// refusalToRecreate returns why there would be no new pod at a revision in the place of one
// that is to be recreated; nil if there would, or if none is to be made.
func (s *successors) refusalToRecreate(ctx context.Context, pod *corev1.Pod, revision *inplace.Revision, now time.Time) *inplace.Refusal {
	if revision == nil {
		return nil
	}
	refused := newRecreationRefusal(s.ask(ctx, pod, revision, now))
	switch told := s.known.toldDenials; {
	case refused == nil:
		told.Delete(revision.Name)
	case refused.Denied && !told.Has(revision.Name):
		told.Insert(revision.Name)
		s.executor.report(s.owner, pod, &event{corev1.EventTypeWarning, refused.Reason, actionRecreate, refused.Message})
	}
	return refused
}

// successorAnswer is why the API server would not accept a new pod in the place of another; no
// error if it would.
type successorAnswer struct {
	pod *corev1.Pod
	err error
	// until is how long the answer is taken as it is: policies and quotas change without an
	// event on the workload or its pods.
	until time.Time
}

// ask returns what the API server says of a new pod at a revision in the place of another. An
// answer is taken as it is for a while, also for other pods.
func (s *successors) ask(ctx context.Context, pod *corev1.Pod, revision *inplace.Revision, now time.Time) successorAnswer {
	answer := s.known.successors[revision.Name]
	if now.Before(answer.until) {
		return answer
	}
	_, err := s.executor.makeSuccessor(ctx, pod, *revision)
	answer = successorAnswer{pod: pod, err: err, until: now.Add(refusalPeriod)}
	s.known.successors[revision.Name] = answer
	return answer
}

// newRecreationRefusal says why a pod stays that is to be recreated: what the API server said,
// or that it did not answer. The name that it made up for the new pod is another one each time.
func newRecreationRefusal(answer successorAnswer) *inplace.Refusal {
	words := func() string {
		base := answer.pod.Name + "-"
		made := regexp.MustCompile(regexp.QuoteMeta(base[:min(len(base), names.MaxGeneratedNameLength)]) + `[a-z0-9]*`)
		return Shorten(made.ReplaceAllLiteralString(ServerWords(answer.err), answer.pod.Name))
	}
	switch {
	case answer.err == nil:
		return nil
	case IsRefusal(answer.err):
		return &inplace.Refusal{
			Reason: inplace.ReasonRecreationDenied, Denied: true, Until: answer.until,
			Message: "it is to be recreated, and the API server would not accept a new pod: " + words(),
		}
	default:
		return &inplace.Refusal{
			Reason: inplace.ReasonAdmissionUnknown, Until: answer.until,
			Message: "the API server has not answered yet whether it would accept a new pod: " + words(),
		}
	}
}

// makeSuccessor returns what the API server would make of a new pod at a revision in the place
// of another, or why it would not accept it. It returns nothing where it cannot be asked.
func (e *Executor) makeSuccessor(ctx context.Context, pod *corev1.Pod, revision inplace.Revision) (*corev1.Pod, error) {
	successor, err := inplace.Successor(pod, revision)
	if err != nil {
		return nil, err
	}
	larger := isLarger(successor, pod)
	err = e.client.Create(ctx, successor, client.DryRunAll, client.DisableReadYourWritesConsistency)
	// The quota of a namespace still counts the pod that is to go.
	hasRoom := IsOfQuota(err) && isCountedAlike(pod, successor) && (!larger || hasRoomWithout(pod, err.Error()))
	// A user of the plugin may have no right to create pods.
	mayNotAsk := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
	switch {
	case err == nil:
		return successor, nil
	case hasRoom, mayNotAsk, IsNoDryRun(err), errors.Is(err, ErrNotAsked), errors.Is(err, context.Canceled):
		return nil, nil //nolint:nilnil // nothing is known of such a pod
	default:
		return nil, err
	}
}

// ErrNotAsked is what a client returns that does not ask the API server about a new pod.
var ErrNotAsked = errors.New("the API server was not asked")

// isCountedAlike reports whether a quota that counts a pod that is to be made counts the one in
// whose place it comes, too. Its scopes may be priority classes, and whether pods are BestEffort.
func isCountedAlike(pod, successor *corev1.Pod) bool {
	isBestEffort := func(pod *corev1.Pod) bool {
		options := resource.PodResourcesOptions{}
		return len(resource.PodRequests(pod, options))+len(resource.PodLimits(pod, options)) == 0
	}
	class := successor.Spec.PriorityClassName // the default one is not in the template
	return (class == "" || class == pod.Spec.PriorityClassName) && isBestEffort(pod) == isBestEffort(successor)
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

// quotaWords are what the API server says of a quota that has no room for a pod: what the pod
// needs of each resource that is short, what is used of it, and the limit.
var quotaWords = regexp.MustCompile(`exceeded quota: \S+, requested: (\S+), used: (\S+), limited: (\S+)`)

// hasRoomWithout reports whether quotas, by the words in which they were refused, have room for
// a pod when another one is gone. They have none if the words do not tell.
func hasRoomWithout(gone *corev1.Pod, words string) bool {
	found := quotaWords.FindAllStringSubmatch(words, -1)
	for _, words := range found {
		requested, used, limited := usageIn(words[1]), usageIn(words[2]), usageIn(words[3])
		after := quota.Subtract(quota.Add(used, requested), usageOf(gone, quota.ResourceNames(requested)))
		if fits, _ := quota.LessThanOrEqual(after, limited); !fits {
			return false
		}
	}
	return len(found) > 0
}

// usageIn reads usage as a quota writes it: "limits.cpu=2,pods=3".
func usageIn(words string) corev1.ResourceList {
	usage := corev1.ResourceList{}
	for word := range strings.SplitSeq(strings.TrimSuffix(words, ","), ",") {
		name, value, _ := strings.Cut(word, "=")
		if amount, err := quantity.ParseQuantity(value); err == nil {
			usage[corev1.ResourceName(name)] = amount
		}
	}
	return usage
}

// usageOf returns what a quota counts of a pod under each of some names.
func usageOf(pod *corev1.Pod, names []corev1.ResourceName) corev1.ResourceList {
	usage := corev1.ResourceList{}
	for _, name := range names {
		usage[name] = countedOf(pod, name)
	}
	return usage
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
