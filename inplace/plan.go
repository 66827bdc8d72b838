// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Workload is what is known of a workload whose pods are to be updated.
type Workload struct {
	Target Target
	// Current is the revision at which pods are made again that are Held; nil if each comes back
	// at its own.
	Current *Revision
	// Unasked is true where the API server is not asked whether it would accept a new pod before
	// one is deleted: a new one has been made already, or is made before.
	Unasked bool
	// OthersDelete is true where others than the one who asks for the plan delete the pods that cannot
	// change in place: no images are pulled before.
	OthersDelete bool
	// Replicas is the number of pods wanted. Those that are missing count as
	// unavailable.
	Replicas int
	// Withheld is how many of the missing pods are made when others have started. While
	// there are any, no available pod is deleted to be made again.
	Withheld int
	// MaxUnavailable is the number of pods that may be unavailable. It may be 0
	// only where there are more pods than Replicas at times: those that are
	// available beyond Replicas give room to others.
	MaxUnavailable int
	// MaxConcurrentResizes is how many pods may change their sizes at the same time,
	// without being restarted for it; at least 1.
	MaxConcurrentResizes int
	// MaxConcurrentClaims is of how many pods the claims may be changing at the same
	// time; at least 1. ChangingClaims is how many pods there are besides Pods whose
	// claims are: those that are to be made again when their volumes have grown.
	MaxConcurrentClaims, ChangingClaims int
	// MinReadySeconds is how long a pod must have been ready to be available.
	MinReadySeconds int32
	// Stopped is true when no pod may start its update: it is paused, or left
	// to the user's deletions. Pods that have been changed are finished, pods
	// that have only been drained go back into service.
	Stopped bool
	// WaitsFor says what has to be before an available pod may be taken out of service: a
	// pod of the new template that serves. It is empty if nothing has to be.
	WaitsFor string
	// Ordered is true when pods are created and deleted one after the other, so
	// that one that is being deleted holds up the others.
	Ordered bool
	// Pods are the pods in the order in which their updates may start.
	Pods []PodFacts
	// Condemned are the pods that are to go for good. They count for nothing; a
	// lost one has a blocker.
	Condemned []*corev1.Pod
	// Lingering are those of Condemned of which one waits for the other to be healthy: they
	// serve until they go.
	Lingering []PodFacts
	// Beside are pods that count for nothing, and are not updated now. They serve, whatever was
	// begun with them.
	Beside []PodFacts
	// Pullers are the pods that pull images for the others. PullerController is what is to
	// control new ones; nil for the workload.
	Pullers          []*corev1.Pod
	PullerController *metav1.OwnerReference
}

// Move is a step that is to be carried out now.
type Move struct {
	Pod  *corev1.Pod
	Step Step
	// Note says in words what is done and why it may be done.
	Note string
	// Evict is true when the move may be made only if an eviction of the pod is
	// allowed: it takes a ready pod out of service, or its resize failed.
	Evict bool
}

// PodState is where one pod is.
type PodState struct {
	Pod *corev1.Pod
	// Proved: every container that was changed was started as its revision says.
	Proved bool
	// Updated: the pod is at the target revision, and proved.
	Updated bool
	// Ready: the pod's Ready condition is True.
	Ready bool
	// Available: the pod has been ready for minReadySeconds, and nothing is
	// being changed in it.
	Available bool
	// Serves: the pod would be available if nothing were being changed in it.
	Serves bool
	// Undrained: nothing but the label drains the pod, and it is ready: the API server has
	// not heeded the label.
	Undrained bool
	// Step is the pod's next step, whether it may be taken now or not.
	Step Step
}

// Blocker says why a pod that is not where it should be does not move.
type Blocker struct {
	Pod *corev1.Pod
	// Claim is set where it is a claim of the pod that does not move. It does not hold
	// up the pod.
	Claim *corev1.PersistentVolumeClaim
	State State
	// Reason is one word, Message a sentence.
	Reason, Message string
	// Since is zero if the objects do not tell.
	Since time.Time
	// Denied is as in Step.
	Denied bool
}

// Plan is the decision on all pods of a workload. It stays as it was made: what is found out
// later makes another plan of it, see [Plan.Without] and [Plan.With].
type Plan struct {
	// Moves are the steps to carry out now.
	Moves []Move
	// Blockers has an entry for every pod that waits, the worst first.
	Blockers []Blocker
	// Pods has an entry for every pod, in the order of the facts.
	Pods []PodState
	// Recheck is when to plan again if nothing happens until then; zero if
	// time alone changes nothing.
	Recheck time.Time
	// CannotDrain says why pods without a readiness gate cannot be drained, as far as that
	// was found out: MakePlan leaves it nil.
	CannotDrain *Refusal
}

// MakePlan decides which pods take their next step now.
//
// A pod that is out of service anyway may go on: acting on it takes nothing
// away. A broken pod goes first, whatever the budget says; otherwise a bad
// revision could never be left. A pod that runs but is not ready may be about to
// recover, so at most MaxUnavailable of those are in work at a time. An
// available pod is taken out of service only while fewer than MaxUnavailable
// pods are unavailable.
//
// A pod whose change the server refuses stays in service, or goes back, and takes
// no budget from the others.
func MakePlan(w Workload, now time.Time) Plan {
	p := &planner{workload: w, now: now, judged: judgements{}, pullWays: newPullWays()}
	views := make([]*view, 0, len(w.Pods))
	for i := range w.Pods {
		views = append(views, p.newView(w.Pods[i]))
	}
	p.count(views)
	p.line(views)
	for _, v := range inPlanningOrder(views) {
		if !p.changeClaims(v) && !p.postponeDetach(v) {
			p.decide(v)
		}
		p.watchClaims(v)
	}
	p.watchCondemned()
	p.bringBack()
	p.plan.Pods = make([]PodState, 0, len(views))
	for _, v := range views {
		p.plan.Pods = append(p.plan.Pods, v.PodState)
	}
	return p.plan.With()
}

// planner collects a plan.
type planner struct {
	workload    Workload
	now         time.Time
	judged      judgements
	pullWays    *pullWays
	plan        Plan
	unavailable int
	inWork      int
	// between is how many of the unavailable pods serve between two batches.
	between int
	// reserved is how many of the unavailable pods are available, see view.reserved.
	reserved int
	// resizing is how many pods are being resized.
	resizing int
	// changing is of how many pods the claims are being changed.
	changing int
	// updates are those that are still to come, claimChanges those of them whose claims
	// are to be changed before.
	updates, claimChanges queue
	// out holds the names of the pods that are unavailable, for messages.
	out []string
	// budget is what budgetMessage says; empty if it was not asked since the numbers changed.
	budget string
}

// situationOf returns the situation of a pod of the workload.
func (p *planner) situationOf(facts PodFacts) situation {
	s := situation{
		facts: facts, observed: facts.observedAt(p.now), target: &p.workload.Target, now: p.now,
		frozen: p.workload.Stopped, judged: p.judged,
	}
	s.asRequested()
	return s
}

// count takes stock before any pod moves. In work is what must come to rest
// before pods that merely are not ready are touched: a revision that makes
// nothing better is not rolled out further. A lost pod does not come to rest.
func (p *planner) count(views []*view) {
	available := 0
	p.changing = p.workload.ChangingClaims
	for _, v := range views {
		if v.takesClaimsPlace() {
			p.changing++
		}
		if v.takesResizePlace() {
			p.resizing++
		}
		if v.Available && v.reserved {
			p.reserved++
			p.out = append(p.out, v.Pod.Name)
			continue
		}
		if v.Available {
			available++
			continue
		}
		if v.between {
			p.between++
		}
		p.out = append(p.out, v.Pod.Name)
		p.recheckAt(v.recheck)
		if !IsLost(v.Pod, p.now) && (!v.wants || v.class == begun || v.Pod.DeletionTimestamp != nil) {
			p.inWork++
		}
		if v.Ready {
			p.recheckAt(p.availableAt(v))
		}
	}
	p.inWork += max(p.workload.Replicas-len(views)-p.workload.Withheld, 0)
	p.unavailable = p.workload.Replicas - available
}

// decide plans the step of one pod.
func (p *planner) decide(v *view) {
	p.recheckAt(v.Step.Until)
	switch {
	case v.Step.State == Settled && v.Ready && !v.Available:
		p.blockUntilAvailable(v)
	case v.Step.State == Settled:
	case v.Step.Action == Wait:
		p.block(v, v.Step.State, v.Step.Reason, v.Step.Message)
	case v.between && p.unavailable-p.between >= p.workload.MaxUnavailable:
		p.block(v, Waiting, ReasonBudget, p.budgetMessage())
	case v.between:
		p.between--
		p.move(v, "it serves between two batches")
	case v.Available && v.reserved && v.Step.takesTurn() && p.unavailable-p.reserved >= p.workload.MaxUnavailable:
		p.block(v, Waiting, ReasonBudget, p.budgetMessage())
	case v.Available && v.reserved && v.Step.takesTurn():
		p.reserved--
		p.move(v, "its turn has come already")
	case v.Step.Action == Resize && !v.Step.takesTurn():
		p.decideResize(v)
	case !v.wants || !v.Step.takesTurn():
		p.move(v, "")
	default:
		p.decideDisruption(v)
	}
}

// blockUntilAvailable names a pod that is ready, and not yet for long enough.
func (p *planner) blockUntilAvailable(v *view) {
	p.block(v, Verifying, ReasonMinReadySeconds, fmt.Sprintf("ready since %s, available when minReadySeconds (%d) have passed",
		servingSince(v.Pod).UTC().Format(time.RFC3339), p.workload.MinReadySeconds))
}

// availableAt returns when a ready pod has been so for long enough.
func (p *planner) availableAt(v *view) time.Time {
	return servingSince(v.Pod).Add(time.Duration(p.workload.MinReadySeconds)*time.Second + time.Second)
}

func (p *planner) decideDisruption(v *view) {
	limit := p.workload.MaxUnavailable
	switch {
	case v.class == broken:
		p.move(v, "broken: outside the budget")
	case v.class == begun && v.Ready && !p.isOut(v) && p.unavailable > limit:
		// It is not certain what it runs, but it serves.
		p.block(v, Waiting, ReasonBudget, p.budgetMessage())
	case v.class == begun && v.Ready && !p.isOut(v):
		p.move(v, "being changed already")
	case v.class == begun:
		p.move(v, "out of service already")
	case !v.Available:
		p.decideUnavailable(v)
	default:
		first := p.awaitsTurn(&p.updates, v)
		switch {
		case p.workload.WaitsFor != "":
			p.block(v, Waiting, ReasonNewPod, p.workload.WaitsFor)
			return
		case p.unavailable >= limit:
			p.block(v, Waiting, ReasonBudget, p.budgetMessage())
			return
		case p.workload.Withheld > 0 && v.Step.Deletes():
			p.block(v, Waiting, appsv1beta1.ReasonScaleUpLimited, Withheld(p.workload.Withheld))
			return
		case first != nil:
			p.block(v, Waiting, ReasonUpdateOrder, turnMessage(first))
			return
		}
		p.unavailable++
		p.inWork++
		p.out, p.budget = append(p.out, v.Pod.Name), ""
		p.start(v, fmt.Sprintf("%d of %d unavailable", p.unavailable, limit))
	}
}

// decideUnavailable plans the update of a pod that is not available, and may become so
// by itself.
func (p *planner) decideUnavailable(v *view) {
	limit := max(p.workload.MaxUnavailable, 1)
	first := p.awaitsTurn(&p.updates, v)
	if p.inWork < limit && first == nil {
		p.inWork++
		p.start(v, "not available anyway")
		return
	}
	// A new pod serves at its revision meanwhile.
	if step := v.finish(); step.Action == MarkReady || step.Action == SetLifecycle {
		v.Step = step
		p.move(v, "until its turn comes")
		return
	}
	if p.inWork < limit {
		p.block(v, Waiting, ReasonUpdateOrder, turnMessage(first))
		return
	}
	p.block(v, Waiting, ReasonBudget, fmt.Sprintf("%s being updated, maxUnavailable is %d", PodsThat(p.inWork, "is", "are"), p.workload.MaxUnavailable))
}

// start moves a pod whose turn has come. Where that depends on its labels, nothing is
// written if they may have changed.
func (p *planner) start(v *view, why string) {
	v.Step.Exact = v.facts.Priority != nil
	p.move(v, why)
}

// decideResize plans a resize that restarts nothing. It takes nothing away, and is
// made of few pods at a time nevertheless: what is wrong with the new sizes shows
// in those.
func (p *planner) decideResize(v *view) {
	limit := max(p.workload.MaxConcurrentResizes, 1)
	switch {
	case v.class == broken:
		p.move(v, "broken: outside of maxConcurrent")
	case v.observed.resized.IsUnderWay():
		p.move(v, "being resized already")
	case v.takesResizePlace():
		p.move(v, "resized before, and not ready since")
	case p.resizing >= limit:
		p.block(v, Waiting, ReasonMaxConcurrent, fmt.Sprintf("%s being resized, maxConcurrent is %d", PodsThat(p.resizing, "is", "are"), limit))
	case p.awaitsTurn(&p.updates, v) != nil:
		p.block(v, Waiting, ReasonUpdateOrder, turnMessage(p.awaitsTurn(&p.updates, v)))
	default:
		p.move(v, fmt.Sprintf("%d of %d resized at a time", p.resizing+1, limit))
	}
}

// isOut reports whether a pod is out of service by our own act, whatever its
// conditions say.
func (p *planner) isOut(v *view) bool {
	return IsMarkedNotReady(v.Pod) || p.workload.Target.isGivenUp(v.Pod)
}

// budgetMessage says what takes the room of maxUnavailable: pods by their names, and how many
// there are not.
func (p *planner) budgetMessage() string {
	if p.budget != "" {
		return p.budget // as for the pod before
	}
	const shown = 5
	names := p.out
	more := ""
	if len(names) > shown {
		names, more = names[:shown], ", ..."
	}
	var takers []string
	if len(names) > 0 {
		takers = append(takers, strings.Join(names, ", ")+more)
	}
	if missing := p.unavailable - len(p.out); missing > 0 {
		takers = append(takers, fmt.Sprintf("%d missing", missing))
	}
	p.budget = fmt.Sprintf("%s unavailable, maxUnavailable is %d", PodsThat(max(p.unavailable, 0), "is", "are"), p.workload.MaxUnavailable)
	if len(takers) > 0 {
		p.budget += ": " + strings.Join(takers, "; ")
	}
	return p.budget
}

func (p *planner) move(v *view, why string) {
	v.started = v.Step.starts()
	if v.detaches() {
		p.changing++
	}
	if v.startsResize() {
		p.resizing++
	}
	note := fmt.Sprintf("%s %s", v.Step.Action, v.Pod.Name)
	for _, words := range []string{v.Step.Message, why} {
		if words != "" {
			note += "; " + words
		}
	}
	p.plan.Moves = append(p.plan.Moves, Move{
		Pod: v.Pod, Step: v.Step, Note: note,
		Evict: v.Step.Evict && v.Step.Action == Recreate ||
			p.workload.Target.RespectBudgets && v.Ready && (!IsMarkedNotReady(v.Pod) || v.Undrained) && v.Step.disrupts(),
	})
}

func (p *planner) block(v *view, state State, reason, message string) {
	if p.workload.Ordered && v.Pod.DeletionTimestamp != nil {
		message += "; podManagementPolicy OrderedReady: no other pod is deleted, and none after it created, before it is gone"
	}
	if v.Step.OnRequest {
		message += ForRequest(v.observed.request.Name)
	}
	p.plan.Blockers = append(p.plan.Blockers, Blocker{
		Pod: v.Pod, State: state, Reason: reason, Message: message, Since: v.Step.Since, Denied: v.Step.Denied,
	})
}

// RecheckedBy returns the plan that is made again at a moment, if it is not before; a zero one is none.
func (p Plan) RecheckedBy(at time.Time) Plan {
	if !at.IsZero() && (p.Recheck.IsZero() || at.Before(p.Recheck)) {
		p.Recheck = at
	}
	return p
}

// recheckAt asks for a new plan at a moment that is still to come.
func (p *planner) recheckAt(at time.Time) {
	if at.After(p.now) {
		p.plan = p.plan.RecheckedBy(at)
	}
}
