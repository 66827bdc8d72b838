// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// assess looks at all members as the planner sees them, before their number
// changes.
func (r *Reconciler) assess(ctx context.Context, s *scope) error {
	if err := r.readFacts(ctx, s); err != nil {
		return err
	}
	w := s.workload(s.members)
	plan := inplace.MakePlan(w, s.Now)
	for i, state := range plan.Pods {
		s.members[i].serves, s.members[i].available, s.members[i].surges = state.Serves, state.Available, s.needsSurge(state)
		s.members[i].returns = state.Step.TakesOutNext || state.Step.LeadsToPatch
		s.members[i].yields = s.yields(state)
	}
	s.counts = countPods(s.members, w.Pods, plan.Pods)
	return nil
}

// readFacts reads the facts of the members, and which of them a user asks to be
// deleted.
func (r *Reconciler) readFacts(ctx context.Context, s *scope) error {
	named, priorityOf := s.namedForDeletion(), inplace.Priorities(s.set.GetPriorityStrategy())
	for _, m := range s.members {
		var err error
		if m.facts, err = workload.Facts(ctx, r.Client, s.Revisions, m.Pod, s.Now); err != nil {
			return err
		}
		m.facts.Asked = named.Has(m.Name)
		m.facts.Claims, m.facts.Priority = s.claimSteps[m.Name], priorityOf(m.Labels)
		m.asked = inplace.AsksForDeletion(m.facts)
	}
	return nil
}

// needsSurge reports whether the next step of a pod takes it out of service, or
// has done so, and a pod beyond replicas is to make up for it. A pod that changes
// in place needs that only where none may be unavailable.
func (s *scope) needsSurge(pod inplace.PodState) bool {
	step, serves := pod.Step, pod.Available || s.isBetweenBatches(pod)
	if step.TakesOutNext {
		return serves && s.set.GetMaxUnavailable() == 0
	}
	if !step.LeadsToPatch {
		return serves && (step.Action == inplace.Recreate || step.IsHold())
	}
	hasBegun := inplace.IsMarkedNotReady(pod.Pod) || inplace.IsPreparingUpdate(pod.Pod)
	takesOut := hasBegun || serves && (step.Change.Restarts() || step.State == inplace.HookHeld)
	return s.set.GetMaxUnavailable() == 0 && takesOut
}

// yields reports whether a pod serves that counts as unavailable for what is to be done to it
// next: it was given up by its hook, or goes on only as the budgets allow.
func (s *scope) yields(pod inplace.PodState) bool {
	lifecycle, minReady := s.set.Spec.Lifecycle.OrNil(), s.set.GetMinReadySeconds()
	return workload.Yields(pod.Pod, lifecycle, minReady, s.Now) ||
		(pod.Undrained || s.isBetweenBatches(pod)) && workload.IsHealthy(pod.Pod, lifecycle, minReady, s.Now)
}

// isBetweenBatches reports whether a pod serves while some of its containers are
// still to be changed: it is not available, and goes on only as the budget allows.
func (s *scope) isBetweenBatches(pod inplace.PodState) bool {
	return pod.Ready && !pod.Proved && inplace.Observe(pod.Pod, s.Now).Reason == inplace.ReasonNextBatch
}

// update lets the pods that stay take their next steps towards their revisions.
func (r *Reconciler) update(ctx context.Context, s *scope) error {
	asked := s.workload(s.staying())
	for _, pod := range asked.Pods {
		if pod.Held {
			delete(s.claimSteps, pod.Pod.Name)
		}
	}
	s.claimCounts = s.countClaims()
	s.Decide(ctx, r.Executor, asked, slices.Concat(s.away, blockersOf(s.scaled.waiting), s.successorsWait())...)
	if s.isUpdated() {
		s.Revisions.Current = s.Revisions.Update
	}
	return s.CarryHandedOver(ctx, r.Executor, func(ctx context.Context, going []*corev1.Pod) (sets.Set[string], error) {
		return r.handOver(ctx, s, going)
	})
}

// staying returns the members that are not to go for good.
func (s *scope) staying() []*member {
	going := sets.New(slices.Concat(s.scaled.remove, s.scaled.waiting)...)
	return slices.DeleteFunc(slices.Clone(s.members), func(m *member) bool { return going.Has(m) })
}

// blockersOf says what pods wait for that are to be deleted and still needed.
func blockersOf(waiting []*member) []inplace.Blocker {
	blockers := make([]inplace.Blocker, 0, len(waiting))
	for _, m := range waiting {
		blockers = append(blockers, inplace.Blocker{
			Pod: m.Pod, State: inplace.Waiting, Reason: inplace.ReasonBudget,
			Message: "to be deleted when enough other pods are available",
		})
	}
	return blockers
}

// successorsWait says which pods new ones wait for, to take over their claims.
func (s *scope) successorsWait() []inplace.Blocker {
	var blockers []inplace.Blocker
	for _, pod := range s.predecessors() {
		if pod.DeletionTimestamp == nil {
			continue // it is deleted now
		}
		step := inplace.Terminate(pod, s.Now)
		blockers = append(blockers, inplace.Blocker{
			Pod: pod, State: step.State, Reason: step.Reason, Since: step.Since,
			Message: step.Message + ", and the next pod takes over its claims",
		})
	}
	return blockers
}

// isUpdated reports whether no pod needs the current revision any more: there are pods, all
// of them ready and at the update revision, and no partition keeps others at the current one
// when there are more.
func (s *scope) isUpdated() bool {
	replicas := s.set.GetReplicas()
	return replicas > 0 && !s.set.HasPartition() && s.counts.Replicas == replicas && s.counts.UpdatedReady == replicas
}

// workload returns what the planner is to know, with the members whose updates it
// is to plan.
func (s *scope) workload(members []*member) inplace.Workload {
	places := hold(members, int(s.set.GetReplicas()), s.partition(), s.scaled.atUpdate)
	// What is being made may be refused: until it is there, it takes the place of a pod that is asked for.
	facts, atUpdate := make([]inplace.PodFacts, len(members)), places.freeVacant+s.scaled.atUpdate
	vacant := atUpdate + places.heldVacant
	for i, m := range members {
		facts[i] = m.facts
		if facts[i].Held = places.held.Has(m.Name); facts[i].Held {
			facts[i].Claims = nil
		}
		if m.asked {
			facts[i].MakesRoomAtCurrent, facts[i].MakesNoRoom = atUpdate <= 0, vacant <= 0
			atUpdate, vacant = atUpdate-1, vacant-1
		}
	}
	return inplace.Workload{
		Target:               s.target(),
		Current:              new(s.Revisions.InPlace(s.Revisions.Current)),
		Replicas:             int(s.set.GetReplicas()),
		Withheld:             s.scaled.withheld,
		MaxUnavailable:       int(s.set.GetMaxUnavailable()),
		MinReadySeconds:      s.set.GetMinReadySeconds(),
		MaxConcurrentResizes: workload.MaxConcurrentResizes(s.set.GetInPlaceUpdateStrategy(), int(s.set.GetReplicas())),
		MaxConcurrentClaims:  workload.MaxConcurrentClaims(s.set.Spec.VolumeClaimUpdateStrategy, int(s.set.GetReplicas())),
		ChangingClaims:       s.awaited.Len() + s.changingElsewhere(facts),
		Stopped:              s.isStopped(),
		Pods:                 facts,
		Condemned:            s.condemned(),
	}
}

// changingElsewhere returns of how many members the claims are being changed without
// the planner being told in the facts: members that are to go, and those that stay at
// their revision meanwhile, as the last old one does for a pod beyond replicas.
func (s *scope) changingElsewhere(told []inplace.PodFacts) int {
	names := sets.New[string]()
	for _, facts := range told {
		if facts.Claims.IsChanging() {
			names.Insert(facts.Pod.Name)
		}
	}
	count := 0
	for _, m := range s.members {
		if m.facts.Claims.IsChanging() && !names.Has(m.Name) {
			count++
		}
	}
	return count
}

func (s *scope) target() inplace.Target {
	target := workload.TargetOf(s.set.GetInPlaceUpdateStrategy(), s.set.Annotations, int(s.set.GetReplicas()))
	target.Revision = s.Revisions.InPlace(s.Revisions.Update)
	target.Revision.Hash = hashOf(s.set.Name, target.Revision.Name)
	if !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		target.IgnoresClaims, target.ClaimTemplates = true, templateNames(s.set.Spec.VolumeClaimTemplates)
	}
	target.ClaimsGoWithPods = !s.set.ReusesClaims()
	target.CannotResize = s.CannotResize
	target.Policy, target.Lifecycle, target.ShowsState = s.set.GetPodUpdatePolicy(), s.set.Spec.Lifecycle.OrNil(), true
	return target
}

func templateNames(templates []corev1.PersistentVolumeClaim) []string {
	names := make([]string, 0, len(templates))
	for i := range templates {
		names = append(names, templates[i].Name)
	}
	return names
}

// condemned returns the pods that go for good, and those that are going already:
// others take their places, so nothing waits for them.
func (s *scope) condemned() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, m := range s.scaled.remove {
		pods = append(pods, m.Pod)
	}
	pods = append(pods, s.outgoing...)
	return append(pods, s.leaving...)
}
