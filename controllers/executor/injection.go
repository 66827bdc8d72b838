// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// What admission puts into pods comes with new ones only. Where a change in place would leave
// pods without that, though it was asked for, they are recreated; or, if their user wants no
// recreation, an event says what they lack.

// answerAge is how old an answer may be that counts while the API server gives no other one.
const answerAge = 5 * time.Minute

// injectionAnswer is what the API server said of the containers that admission puts into new
// pods, with what changes from one revision to another, and without it.
type injectionAnswer struct {
	// made is a new pod; nil where that is not known.
	made *corev1.Pod
	// changed says how what changes in labels and annotations changes the containers; empty if
	// it does not.
	changed string
	// err is why the server has not answered; nil if it has, also if it refuses such pods.
	err error
	// until is how long the answer is taken as it is, at when it was given.
	until, at time.Time
}

// injection judges the changes in place of one plan by what admission puts into new pods.
type injection struct {
	executor *Executor
	workload inplace.Workload
	known    *verdicts
	// places are those of the pods in the plan, by their UIDs.
	places map[types.UID]int
	// asks holds whether what changes from a revision may change what is injected, and answers
	// what the API server said, by the revision of the pods.
	asks    map[string]bool
	answers map[string]*injectionAnswer
}

func newInjection(e *Executor, w inplace.Workload, known *verdicts) *injection {
	j := &injection{
		executor: e, workload: w, known: known,
		places: make(map[types.UID]int, len(w.Pods)), asks: map[string]bool{}, answers: map[string]*injectionAnswer{},
	}
	for i := range w.Pods {
		j.places[w.Pods[i].Pod.UID] = i
	}
	return j
}

// concerned returns the place of a pod that a move is about to change, if what changes may have
// to do with what admission puts into it.
func (j *injection) concerned(move inplace.Move, pods []inplace.PodFacts, plan inplace.Plan) (int, bool) {
	i, isPlanned := j.places[move.Pod.UID]
	return i, isPlanned && move.Step.LeadsToPatch && j.concerns(pods[i], plan.Pods[i])
}

// refuse marks the pods whose change in place would leave them without other containers that
// admission puts into new ones. It reports whether the plan is to be made again for that.
func (j *injection) refuse(ctx context.Context, pods []inplace.PodFacts, plan inplace.Plan, now time.Time) bool {
	if j.workload.Stopped {
		return false
	}
	for _, move := range plan.Moves {
		if i, isConcerned := j.concerned(move, pods, plan); isConcerned && j.answers[pods[i].From.Name] == nil {
			answer := j.ask(ctx, move.Pod, pods[i].From, now)
			j.answers[pods[i].From.Name] = &answer
		}
	}
	if j.workload.Target.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return false
	}
	marked := false
	for i := range pods {
		if pods[i].Refused != nil || !j.concerns(pods[i], plan.Pods[i]) {
			continue
		}
		if words, until := j.lacks(pods[i]); words != "" {
			marked = true
			pods[i].Refused = &inplace.Refusal{
				Reason: inplace.ReasonInjectionChanged, Until: until,
				Message: "a new pod gets other containers from admission, which the template does not have: " + words,
			}
		}
	}
	return marked
}

// concerns reports whether a pod is about to be changed in place to the target, and what changes
// may have to do with what admission puts into it.
func (j *injection) concerns(facts inplace.PodFacts, pod inplace.PodState) bool {
	if !pod.Step.LeadsToPatch || facts.Held || facts.From == nil || facts.From.Name == j.workload.Target.Name {
		return false
	}
	asks, known := j.asks[facts.From.Name]
	if !known {
		from, to := facts.From.Template, j.workload.Target.Template
		asks = inplace.AsksForNewContainers(from, to) || inplace.MayInjectOtherwise(from, to)
		j.asks[facts.From.Name] = asks
	}
	return asks
}

// lacks says in words what a pod would lack of what a new one has, and until when that is so;
// nothing if that is not known.
func (j *injection) lacks(facts inplace.PodFacts) (string, time.Time) {
	answer, target := j.answers[facts.From.Name], j.workload.Target.Template
	switch {
	case answer == nil || answer.made == nil:
		return "", time.Time{}
	case answer.changed == "" && inplace.AsksForNewContainers(facts.From.Template, target):
		return inplace.OtherImagesInjected(facts.Pod, answer.made, target), answer.until
	default:
		return answer.changed, answer.until
	}
}

// ask returns what the API server says of what admission puts into new pods in the places of
// those of a revision. It is asked again when its answer is old.
func (j *injection) ask(ctx context.Context, pod *corev1.Pod, from *inplace.Revision, now time.Time) injectionAnswer {
	before, known := j.known.injections[from.Name]
	if known && now.Before(before.until) {
		return before
	}
	answer := j.asked(ctx, pod, from)
	answer.at, answer.until = now, now.Add(refusalPeriod)
	if answer.err != nil && known && before.err == nil && now.Sub(before.at) < answerAge {
		answer = before
		answer.until = now.Add(refusalPeriod)
	}
	j.known.injections[from.Name] = answer
	return answer
}

// asked asks about a new pod. If labels or annotations change, it asks about another one, which
// differs in nothing else, and once more about the first: what differs between equal pods is
// made up at random, and says nothing.
func (j *injection) asked(ctx context.Context, pod *corev1.Pod, from *inplace.Revision) injectionAnswer {
	target := j.workload.Target.Revision
	made, err := j.make(ctx, pod, target)
	if made == nil || !inplace.MayInjectOtherwise(from.Template, target.Template) {
		return injectionAnswer{made: made, err: err}
	}
	unchanged := target
	unchanged.Template = target.Template.WithMetadataOf(from.Template)
	before, err := j.make(ctx, pod, unchanged)
	if before == nil {
		return injectionAnswer{err: err}
	}
	changed := inplace.OtherContainersInjected(before, made, target.Template)
	if changed == "" {
		return injectionAnswer{made: made}
	}
	again, err := j.make(ctx, pod, target)
	switch {
	case again == nil:
		return injectionAnswer{err: err}
	case inplace.OtherContainersInjected(again, made, target.Template) != "":
		changed = inplace.OtherImagesInjected(before, again, target.Template)
	}
	return injectionAnswer{made: again, changed: changed}
}

// make returns what the API server would make of a new pod at a revision: nothing if it would
// not accept one, or cannot be asked. An error says that it has not answered.
func (j *injection) make(ctx context.Context, pod *corev1.Pod, revision inplace.Revision) (*corev1.Pod, error) {
	made, err := j.executor.makeSuccessor(ctx, pod, revision)
	// A webhook that must be asked and fails is down, as an injector may be while it is upgraded.
	if IsRefusal(err) && !apierrors.IsInternalError(err) {
		return nil, nil //nolint:nilnil // nothing is known of such a pod
	}
	return made, err
}

// withoutUnanswered returns a plan without the moves of which it is not known yet what a new
// pod would be.
func (j *injection) withoutUnanswered(plan inplace.Plan, pods []inplace.PodFacts) inplace.Plan {
	if j.workload.Target.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return plan
	}
	return plan.Without(func(move inplace.Move) *inplace.Bar {
		i, isConcerned := j.concerned(move, pods, plan)
		if !isConcerned {
			return nil
		}
		answer := j.answers[pods[i].From.Name]
		if answer == nil || answer.err == nil {
			return nil
		}
		return &inplace.Bar{
			Reason: inplace.ReasonAdmissionUnknown, Until: answer.until,
			Message: "the API server has not answered yet what a new pod would be: " + Shorten(ServerWords(answer.err)),
		}
	})
}

// tell reports which pods are changed in place and lack what new ones have, since their user
// wants no recreation: once for each way in which they differ.
func (j *injection) tell(owner client.Object, plan inplace.Plan, pods []inplace.PodFacts) {
	if j.workload.Target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return
	}
	told := make([]*event, len(plan.Moves))
	said := sets.New[string]()
	for n, move := range plan.Moves {
		i, isConcerned := j.concerned(move, pods, plan)
		if !isConcerned {
			continue
		}
		words, _ := j.lacks(pods[i])
		if words == "" || j.known.toldInjections.Has(words) {
			continue
		}
		said.Insert(words)
		told[n] = &event{
			corev1.EventTypeWarning, inplace.ReasonInjectionChanged, actionUpdateInPlace,
			"it stays, as InPlaceOnly asks for, though a new pod gets other containers from admission: " + words + "; with InPlaceIfPossible, pods are recreated for that",
		}
		j.executor.reportOnPod(owner, move.Pod, told[n])
	}
	j.known.toldInjections = j.known.toldInjections.Union(said)
	j.executor.reportOnWorkload(owner, plan.Moves, told)
}
