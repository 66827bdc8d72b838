// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// Rollout is what a reconciliation found and decided.
type Rollout struct {
	// Revision is the one that pods are to become.
	Revision string
	// Planned is false for a reconciliation that failed before it had a Plan: of pods
	// and claims, what was told last holds.
	Planned bool
	Plan    inplace.Plan
	// Failed holds the errors of moves, by pod name.
	Failed map[string]error
	// Claims are the steps of claims, by pod name.
	Claims map[string]volumes.Claims
	// Incomplete: pods are missing, or are to go.
	Incomplete bool
	// IsOver: nothing of it is told after this, whatever it is like.
	IsOver bool
	// Stalled is the reason why it needs a user; empty if it does not.
	Stalled string
	// Since is when it last came nearer, by what was reported before; zero if nothing
	// was. It is looked at where nothing is remembered.
	Since time.Time
}

// isAtRest reports whether there is nothing to do and nothing to wait for.
func (r *Rollout) isAtRest() bool {
	if r.IsOver {
		return true
	}
	if !r.Planned || r.Stalled != "" || r.Incomplete || len(r.Plan.Moves)+len(r.Plan.Blockers)+len(r.Failed) > 0 {
		return false
	}
	return !slices.ContainsFunc(r.Plan.Pods, func(pod inplace.PodState) bool { return pod.Step.State != inplace.Settled })
}

// tellsNothing reports whether a reconciliation failed for a reason that passes by
// itself, before it had anything to tell.
func (r *Rollout) tellsNothing() bool {
	return !r.Planned && r.Stalled == ""
}

// rolloutMemory is what was seen of a workload that is not at rest.
type rolloutMemory struct {
	// What is told of it.
	states     map[inplace.State]int
	blockers   map[string]int
	stalled    string
	progressed time.Time

	revision string
	// waiting are the states of pods that have a blocker.
	waiting map[types.UID]inplace.State
	pods    map[types.UID]*podMemory
	claims  map[types.UID]*claimMemory
	// round counts reports, to find what is not there any more.
	round int
}

// podMemory is what was seen of a pod.
type podMemory struct {
	state inplace.State
	// since is when it was seen there first.
	since time.Time
	// furthest is how far it ever came on its way to the revision.
	furthest int
	// resizing: its sizes were written. outcome is what was counted last of that.
	resizing bool
	outcome  string
	round    int
}

// claimMemory is what was seen of a claim.
type claimMemory struct {
	// changing: its change was written. outcome is what was counted last of that.
	changing bool
	outcome  string
	round    int
}

func newRolloutMemory() *rolloutMemory {
	return &rolloutMemory{
		states: map[inplace.State]int{}, blockers: map[string]int{}, waiting: map[types.UID]inplace.State{},
		pods: map[types.UID]*podMemory{}, claims: map[types.UID]*claimMemory{},
	}
}

// learn takes in what is reported, and counts what has come of what was seen before.
func (m *rolloutMemory) learn(k *KindMetrics, r Rollout, now time.Time) {
	m.stalled = reasonLabel(r.Stalled)
	if m.progressed.IsZero() {
		m.progressed = beginning(r, now)
	}
	if !r.Planned {
		return
	}
	if m.round > 0 && m.revision != r.Revision {
		m.progressed = now
		for _, pod := range m.pods {
			pod.furthest = 0
		}
	}
	m.revision = r.Revision
	m.round++
	m.countBlockers(r)
	m.followPods(k, r, now)
	m.followClaims(k, r)
}

// countBlockers counts what keeps pods and claims from going on, and notes where those
// pods are: one that waits for its turn is not at the step that comes then.
func (m *rolloutMemory) countBlockers(r Rollout) {
	clear(m.waiting)
	clear(m.blockers)
	for _, blockers := range [][]inplace.Blocker{failedMoves(r.Plan, r.Failed), r.Plan.Blockers} {
		for i := range blockers {
			blocker := &blockers[i]
			m.blockers[reasonLabel(blocker.Reason)]++
			if _, isKnown := m.waiting[blocker.Pod.UID]; blocker.Claim == nil && !isKnown {
				m.waiting[blocker.Pod.UID] = blocker.State // the worst comes first
			}
		}
	}
}

// followPods compares the pods with what they were.
func (m *rolloutMemory) followPods(k *KindMetrics, r Rollout, now time.Time) {
	clear(m.states)
	for i := range r.Plan.Pods {
		planned := &r.Plan.Pods[i]
		state, waits := m.waiting[planned.Pod.UID]
		if !waits {
			state = planned.Step.State
		}
		m.states[state]++
		pod, isKnown := m.pods[planned.Pod.UID]
		if !isKnown {
			pod = &podMemory{state: state, since: now, furthest: -1}
			m.pods[planned.Pod.UID] = pod
		}
		if pod.state != state {
			pod.leave(k, now)
			pod.state, pod.since = state, now
		}
		if distance[state] > pod.furthest {
			pod.furthest = distance[state]
			if m.round > 1 {
				m.progressed = now
			}
		}
		pod.followResize(k, planned)
		pod.round = m.round
	}
	m.noteResizes(r)
	for uid, pod := range m.pods {
		if pod.round == m.round {
			continue
		}
		if pod.state == inplace.Recreating {
			pod.leave(k, now)
		}
		delete(m.pods, uid)
	}
}

// noteResizes notes whose sizes are being written.
func (m *rolloutMemory) noteResizes(r Rollout) {
	for i := range r.Plan.Moves {
		move := &r.Plan.Moves[i]
		if pod := m.pods[move.Pod.UID]; pod != nil && move.Step.Action == inplace.Resize && r.Failed[move.Pod.Name] == nil {
			pod.resizing = true
		}
	}
}

// leave counts how long a pod was at a step.
func (p *podMemory) leave(k *KindMetrics, now time.Time) {
	if p.state != inplace.Settled {
		k.observeStep(p.state, now.Sub(p.since))
	}
}

// followResize counts what has come of the sizes of a pod.
func (p *podMemory) followResize(k *KindMetrics, state *inplace.PodState) {
	outcome := resizeOutcomes[state.Step.Reason]
	switch {
	case outcome != "":
		p.resizing = p.resizing || outcome != outcomeDenied
	case state.Step.Reason == inplace.ReasonResizeInProgress:
		p.resizing = true
	case p.resizing && state.Updated && !state.Step.IsResize():
		outcome, p.resizing = outcomeDone, false
	}
	if outcome != "" && outcome != p.outcome {
		k.all.resizes.WithLabelValues(k.kind, outcome).Inc()
	}
	p.outcome = outcome
}

var resizeOutcomes = map[string]string{
	inplace.ReasonResizeDeferred:   outcomeDeferred,
	inplace.ReasonResizeInfeasible: outcomeInfeasible,
	inplace.ReasonResizeError:      outcomeError,
	inplace.ReasonResizeDenied:     outcomeDenied,
}

// followClaims compares the claims with what they were.
func (m *rolloutMemory) followClaims(k *KindMetrics, r Rollout) {
	for _, steps := range r.Claims {
		for i := range steps {
			step := &steps[i]
			if step.Claim == nil {
				continue
			}
			claim := m.claims[step.Claim.UID]
			if claim == nil {
				claim = &claimMemory{}
				m.claims[step.Claim.UID] = claim
			}
			claim.follow(k, step)
			claim.round = m.round
		}
	}
	for i := range r.Plan.Moves {
		move := &r.Plan.Moves[i]
		for _, step := range move.Step.Claims {
			if claim := m.claims[step.Claim.UID]; claim != nil && r.Failed[move.Pod.Name] == nil && !step.Patch.IsEmpty() {
				claim.changing = true
			}
		}
	}
	for uid, claim := range m.claims {
		if claim.round != m.round {
			delete(m.claims, uid)
		}
	}
}

// follow counts what has come of the change of a claim.
func (c *claimMemory) follow(k *KindMetrics, step *volumes.Step) {
	outcome := ""
	switch {
	case step.Refused != "" || step.Reason == volumes.ReasonClaimRefused:
		outcome = outcomeRefused
	case step.State == volumes.Blocked:
		outcome = outcomeBlocked
	case step.State == volumes.UnderWay && !step.Foreign:
		c.changing = true
	case step.State == volumes.Settled && c.changing:
		outcome, c.changing = outcomeDone, false
	}
	if outcome != "" && outcome != c.outcome {
		k.all.claims.WithLabelValues(k.kind, outcome).Inc()
	}
	c.outcome = outcome
}

// distance tells how far on its way a pod is at a step. A stuck one is nowhere.
var distance = map[inplace.State]int{
	inplace.Stuck:          0,
	inplace.Waiting:        0,
	inplace.HookHeld:       1,
	inplace.UpdatingClaims: 2,
	inplace.Draining:       3,
	inplace.Grace:          4,
	inplace.Resizing:       5,
	inplace.Patching:       6,
	inplace.Recreating:     7,
	inplace.Restarting:     8,
	inplace.Verifying:      9,
	inplace.Settled:        10,
}

// beginning returns when a rollout that was not seen before last came nearer: by what
// was reported before, or by what its pods tell.
func beginning(r Rollout, now time.Time) time.Time {
	if r.Since.IsZero() {
		return now
	}
	last := r.Since
	for i := range r.Plan.Pods {
		pod := r.Plan.Pods[i].Pod
		last = latest(last, pod.CreationTimestamp.Time, now)
		for _, condition := range pod.Status.Conditions {
			if condition.Status == corev1.ConditionTrue {
				last = latest(last, condition.LastTransitionTime.Time, now)
			}
		}
	}
	return last
}

// latest returns the later of two times, but none that is to come: that is of a clock
// which is wrong.
func latest(a, b, now time.Time) time.Time {
	if b.After(now) {
		b = now
	}
	if b.After(a) {
		return b
	}
	return a
}
