// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/volumes"
)

// ReasonClaimTemplatesChanged is the reason of a pod that cannot change in place since
// a claim template was added or removed: the volumes of a live pod stay.
const ReasonClaimTemplatesChanged = "ClaimTemplatesChanged"

// refuseOtherClaims refuses to change a pod in place whose claims are not those that
// a revision has templates for.
func refuseOtherClaims(pod *corev1.Pod, target Target) *Refusal {
	if target.IgnoresClaims || target.ClaimTemplates == nil {
		return nil
	}
	has := sets.New[string]()
	for _, volume := range pod.Spec.Volumes {
		claim := volume.PersistentVolumeClaim
		if claim != nil && claim.ClaimName == volumes.ClaimName(volume.Name, pod.Name) {
			has.Insert(volume.Name)
		}
	}
	for _, name := range target.ClaimTemplates {
		if !has.Has(name) {
			return &Refusal{
				Reason: ReasonClaimTemplatesChanged, Field: "volumeClaimTemplates",
				Message: "volumeClaimTemplates has got " + name + ", and a live pod gets no volume",
			}
		}
	}
	wanted := sets.New(target.ClaimTemplates...).Insert(target.Template.claimVolumes()...)
	if superfluous := sets.List(has.Difference(wanted)); len(superfluous) > 0 {
		return &Refusal{
			Reason: ReasonClaimTemplatesChanged, Field: "volumeClaimTemplates",
			Message: "volumeClaimTemplates has " + strings.Join(superfluous, ", ") + " no more, and a live pod loses no volume",
		}
	}
	return nil
}

// detachForClaims returns the step that makes a pod go whose claims need that; nil if
// none does. A pod in the middle of a change comes to rest first, and begins no other one,
// unless it is broken: another claim may be what it needs.
func (s *situation) detachForClaims() *Step {
	claims := s.facts.Claims.In(volumes.Detaching)
	if len(claims) == 0 || s.facts.Claims.KeepPod() {
		return nil
	}
	if s.observed.progress().Complete {
		return ptr.To(s.remove(claims[0].Reason, claims.Message()))
	}
	step := s.finish()
	if IsBroken(s.facts.Pod) || step.State == Settled {
		return nil
	}
	return &step
}

// noteDetached adds to a step that deletes a pod what is to be noted on the claims
// that need that.
func (s *situation) noteDetached(step Step) Step {
	if step.Action == Recreate {
		step.Claims = s.facts.Claims.In(volumes.Detaching)
	}
	return step
}

// awaitClaims returns the step of a pod whose claims come before it: it waits for
// them, in service. It is nil if they ask for nothing, or cannot follow their
// templates: then they hold up nothing. A pod that its policy recreates waits only until
// its claims are changed.
func (s *situation) awaitClaims() *Step {
	step := s.claimsFirst()
	if step == nil {
		return nil
	}
	if back := s.finish(); back.Action == MarkReady || back.Action == SetLifecycle {
		return &back
	}
	if s.obstacle != nil && s.obstacle.Reason == ReasonPolicyReCreate && isAskedFor(s.facts.Claims) {
		return nil
	}
	step.TakesOutNext = s.obstacle != nil || s.change.Restarts()
	return step
}

// isAskedFor reports whether all that the templates ask for was asked of the volumes, and
// no volume needs its pod for it. A pod that goes anyway need not wait for them then: a
// volume grows under a new pod as under the old one.
func isAskedFor(claims volumes.Claims) bool {
	return !claims.AwaitedByPod().Has(volumes.Changing) && !claims.KeepPod()
}

// finishWithClaims returns the step of a pod at its revision, whose claims may follow
// later: when they have become able to.
func (s *situation) finishWithClaims() Step {
	if step := s.first((*situation).gone, (*situation).detachForClaims, (*situation).restartOnRequest); step != nil {
		return s.noteDetached(*step)
	}
	step := s.finishUnlessRefused()
	if step.State != Settled {
		return s.noteDetached(step)
	}
	if waits := s.first((*situation).claimsFirst, (*situation).awaitRequest); waits != nil {
		return *waits
	}
	return step
}

// claimsFirst returns the step of a pod that waits for its claims; nil if it does not.
// One that does not run anyway waits for nothing: its change may be what it needs.
// The patches of the claims are no step of the pod: see planner.changeClaims.
func (s *situation) claimsFirst() *Step {
	claims := s.facts.Claims.AwaitedByPod()
	if len(claims) == 0 || isIdle(s.facts.Pod) {
		return nil
	}
	return s.overdue(Step{
		State: UpdatingClaims, Reason: claims[0].Reason, Message: claims.Message(), Since: claims.Since(), Until: claims.Until(),
	})
}

// isIdle reports whether a pod does no work that could be lost.
func isIdle(pod *corev1.Pod) bool {
	return IsBroken(pod) || pod.Status.Phase == corev1.PodPending
}

// keepForClaims keeps a pod that is to be recreated, while another one could not
// mount its volume.
func (s *situation) keepForClaims(refused *Refusal) Step {
	if step := s.finish(); step.Action == MarkReady || step.Action == SetLifecycle {
		return step
	}
	claims := s.facts.Claims
	return Step{
		State: Stuck, Reason: ReasonVolumeNotMountable, Since: claims.Since(), Until: claims.Until(),
		Message: fmt.Sprintf("it is to be recreated (%s), and another pod could not mount its volume: %s", refused.Message, claims.In(volumes.Blocked).Message()),
	}
}

// changeClaims plans the patches of a pod's claims, and reports whether the pod is
// done with for this plan: it waits for its turn to have them changed.
//
// A pod that would be taken out of service next has its claims changed only when
// there is room for that: a revision that breaks the first pods changes no claims of
// the others.
func (p *planner) changeClaims(v *view) (waits bool) {
	claims := v.facts.Claims.In(volumes.Changing)
	if len(claims) == 0 || v.Pod.DeletionTimestamp != nil {
		return false
	}
	awaitsClaims := v.Step.State == UpdatingClaims
	limit := max(p.workload.MaxConcurrentClaims, 1)
	why := "broken: outside of maxConcurrent"
	switch {
	case v.class == broken:
	case v.facts.Claims.IsChanging():
		why = "its claims are being changed already"
	case p.changing >= limit:
		return p.postponeClaims(v, awaitsClaims, ReasonMaxConcurrentClaims, p.claimsMessage())
	case awaitsClaims && v.Step.TakesOutNext && v.Available && p.unavailable >= p.workload.MaxUnavailable:
		return p.postponeClaims(v, awaitsClaims, ReasonBudget, p.budgetMessage())
	case awaitsClaims && p.awaitsTurn(&p.claimChanges, v) != nil:
		return p.postponeClaims(v, awaitsClaims, ReasonUpdateOrder, turnMessage(p.awaitsTurn(&p.claimChanges, v)))
	default:
		v.claimsStarted = true
		p.changing++
		why = fmt.Sprintf("claims of %d of %d pods at a time", p.changing, limit)
	}
	p.plan.Moves = append(p.plan.Moves, Move{
		Pod: v.Pod, Step: Step{Action: ChangeClaims, State: UpdatingClaims, Reason: claims[0].Reason, Message: claims.Message(), Claims: claims},
		Note: fmt.Sprintf("%s %s; %s; %s", ChangeClaims, v.Pod.Name, claims.Message(), why),
	})
	return false
}

func (p *planner) claimsMessage() string {
	return fmt.Sprintf("the claims of %s are being changed, maxConcurrent is %d", Pods(p.changing), max(p.workload.MaxConcurrentClaims, 1))
}

// takesClaimsPlace reports whether a pod takes one of the places for changes of claims.
func (v *view) takesClaimsPlace() bool {
	return v.facts.Claims.IsChanging() || v.Pod.DeletionTimestamp != nil && v.facts.Claims.Has(volumes.Detaching)
}

// detaches reports whether a pod is to be deleted for its claims.
func (v *view) detaches() bool {
	return v.Step.Action == Recreate && len(v.Step.Claims) > 0
}

// postponeDetach reports whether a pod that is to go for its claims waits until those
// of others are done, and names that.
func (p *planner) postponeDetach(v *view) bool {
	// A pod that has its place already, or does no work, takes none from others.
	if !v.detaches() || v.facts.Claims.IsChanging() || v.class == broken || p.changing < max(p.workload.MaxConcurrentClaims, 1) {
		return false
	}
	p.block(v, Waiting, ReasonMaxConcurrentClaims, p.claimsMessage())
	return true
}

// postponeClaims names what the claims of a pod wait for, unless the pod itself has
// something else to do.
func (p *planner) postponeClaims(v *view, awaitsClaims bool, reason, message string) bool {
	if !awaitsClaims && v.Step.State != Settled {
		return false
	}
	p.block(v, Waiting, reason, message)
	return true
}

// watchClaims names the claims of a pod that cannot follow their templates.
func (p *planner) watchClaims(v *view) {
	p.recheckAt(v.facts.Claims.Until())
	for _, claim := range v.facts.Claims {
		blocker := Blocker{Pod: v.Pod, Claim: claim.Claim, State: Stuck, Reason: claim.Reason, Message: claim.Message, Since: claim.Since}
		switch {
		case claim.Refused != "":
			blocker.Reason, blocker.Message = volumes.ReasonClaimRefused, claim.Refused
		case claim.Foreign:
			blocker.State = UpdatingClaims
		case claim.State != volumes.Blocked:
			continue
		}
		p.plan.Blockers = append(p.plan.Blockers, blocker)
	}
}
