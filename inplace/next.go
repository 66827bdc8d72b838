// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"time"

	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// Next returns the next step of a pod towards a target.
//
// Any state can be left for any target: the way is computed from what the pod
// is, not from what was intended with it before.
func Next(facts PodFacts, target Target, now time.Time) Step {
	return situationOf(facts, &target, now).next()
}

// next returns the step of a pod that is to come to the target. The first stage that
// returns a step wins; patch always returns one.
func (s *situation) next() Step {
	step := s.first(
		(*situation).gone,            // it does not come back
		(*situation).deleteOnRequest, // a user or the workload asks for its deletion
		(*situation).stayAtTarget,    // it has the revision already
		(*situation).detachForClaims, // its claims can be changed only without it
	)
	if step == nil {
		s.change, s.obstacle = s.compare()
		step = s.first(
			(*situation).awaitClaims,    // its claims are changed first
			(*situation).awaitCertainty, // an earlier change comes to its end first
			(*situation).cannotChange,   // it cannot change in place: recreate or keep it
			(*situation).serverRefused,  // the server refuses the change: recreate or keep it
			(*situation).cannotDrain,    // it cannot be taken out of service: recreate or keep it
			(*situation).awaitHook,      // its hook holds it
			(*situation).grow,           // it gets larger sizes while it serves
			(*situation).drain,          // it is taken out of service
			(*situation).patch,          // it is changed
		)
	}
	return s.noteDetached(*step)
}

// deleteOnRequest recreates a pod that the user, or the workload, asks to be deleted.
func (s *situation) deleteOnRequest() *Step {
	if !AsksForDeletion(s.facts) {
		return nil
	}
	return ptr.To(s.remove(ReasonSpecifiedDelete, whoAsks(s.facts)))
}

// stayAtTarget finishes a pod that has the revision of the target.
func (s *situation) stayAtTarget() *Step {
	if !s.isAtTarget() {
		return nil
	}
	return ptr.To(s.finishWithClaims())
}

// isAtTarget reports whether a pod has the revision of the target. One that came to it in place
// while claims did not follow their templates may lack volumes of it: it has it only when they
// need not follow. One that was created at it is what the API server made of it.
func (s *situation) isAtTarget() bool {
	pod := s.facts.Pod
	return RevisionOf(pod) == s.target.Name && (refuseOtherClaims(pod, *s.target) == nil || isWhereCreated(pod))
}

// compare compares the pod with the target, as far as its policy allows a change in
// place. A revision that differs in nothing is always taken in place.
func (s *situation) compare() (Change, *Refusal) {
	target := s.target
	var from *Template
	if s.facts.From != nil {
		from = s.facts.From.Template
	}
	judged := s.judged.of(from, target.Template)
	if judged.refused != nil {
		return Change{}, judged.refused
	}
	if refused := refuseOtherClaims(s.facts.Pod, *target); refused != nil {
		return Change{}, refused
	}
	if refused := refuseSizes(from, target); refused != nil {
		return Change{}, refused
	}
	change, refused := s.observed.compare(from, target.Template)
	recreates := target.Policy != appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType &&
		target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	if refused == nil && recreates && !judged.equal {
		refused = &Refusal{Reason: ReasonPolicyReCreate, Message: target.policyReCreates()}
	}
	return change, refused
}

// refuseSizes objects to other sizes where the API server changes those of no live pod.
func refuseSizes(from *Template, target *Target) *Refusal {
	if !target.CannotResize {
		return nil
	}
	field, differ := from.amounts.FirstDifference(target.Template.amounts)
	if !differ {
		return nil
	}
	return &Refusal{
		Reason: ReasonResizeUnsupported, Field: field.String(),
		Message: field.String() + " was changed, and the API server does not serve pods/resize",
	}
}

// awaitCertainty lets an earlier change of a pod come to its end, where the next
// cannot be made before it is certain what a container runs.
func (s *situation) awaitCertainty() *Step {
	why := s.obstacle
	if why == nil || why.Reason != ReasonSettling {
		return nil
	}
	if step := s.finish(); step.State == Restarting || step.State == Stuck {
		return &step
	}
	return s.overdue(Step{
		State: Restarting, Reason: why.Reason, Message: why.Message, Since: s.observed.state.UpdateTimestamp.Time, Until: why.Until,
	})
}

// cannotChange is the stage of a pod that cannot change in place.
func (s *situation) cannotChange() *Step {
	if s.obstacle == nil {
		return nil
	}
	return ptr.To(s.recreateOrKeep(s.obstacle))
}

// serverRefused is the stage of a pod whose change the server refuses, or whose change would not
// do what was asked for: the server undoes what has a container restarted, or gives new pods
// other containers.
func (s *situation) serverRefused() *Step {
	refused := s.facts.Refused
	if refused == nil {
		return nil
	}
	if refused.Reason != ReasonNotRestarted && refused.Reason != ReasonInjectionChanged {
		return ptr.To(s.evictOrKeep(refused))
	}
	step := s.recreateOrKeep(refused)
	step.Until = soonest(step.Until, refused.Until)
	return &step
}

// recreateOrKeep recreates a pod that cannot change in place, or keeps it: because its
// volume could not be mounted by another one, because its sizes are refused, or because data
// would be lost.
func (s *situation) recreateOrKeep(refused *Refusal) Step {
	_, isResize := s.verdictOn(refused)
	switch {
	case s.facts.Claims.KeepPod() && !isIdle(s.facts.Pod):
		return s.keepForClaims(refused)
	case isResize:
		return s.evictOrKeep(refused)
	case refused.Reason == ReasonClaimTemplatesChanged && s.target.ClaimsGoWithPods && s.target.Policy == appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType:
		return s.stayAsIs(refused, "the data of its other claims would go with the pod: have claims reused, or delete the pod yourself")
	default:
		return s.recreateIfAllowed(refused)
	}
}

// recreateIfAllowed recreates a pod that cannot change in place. With InPlaceOnly, the pod
// stays as it is.
func (s *situation) recreateIfAllowed(refused *Refusal) Step {
	if s.target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return s.remove(refused.Reason, refused.Message)
	}
	return s.stayAsIs(refused,
		s.target.policyIs(s.target.Policy)+" keeps the pod as it is: revert the field, or allow recreation with InPlaceIfPossible")
}

// stayAsIs keeps a pod in service as it is, and says what the user can do.
func (s *situation) stayAsIs(refused *Refusal, advice string) Step {
	if step := s.restartOnRequest(); step != nil {
		return *step
	}
	if step := s.finish(); step.State != Settled {
		return step
	}
	return Step{State: Stuck, Reason: refused.Reason, Message: refused.Message + "; " + advice}
}

// evictOrKeep keeps a pod whose change the server refuses in service as it is. It evicts the
// pod only if its new sizes are refused and the workload wants that: whoever wrote the rule
// that refuses the change did not ask for a new pod, and the rule may refuse that as well.
func (s *situation) evictOrKeep(refused *Refusal) Step {
	if verdict, _ := s.verdictOn(refused); verdict == resize.Recreate {
		return s.evict(refused.Reason, refused.Message)
	}
	step := s.finish()
	switch {
	case step.Action == Wait || step.Action == Patch:
	case refused.Denied && (step.Action == Resize || step.Action == MarkNotReady):
		// What the pod has grown stays: the server may change its mind, and what was
		// tried in its favor would be made again.
	default:
		return step
	}
	until := soonest(refused.Until, step.Until)
	message := refused.Message
	if _, isResize := s.verdictOn(refused); isResize {
		message = s.keptSizesMessage(refused.Reason, message)
	}
	return Step{State: Stuck, Reason: refused.Reason, Message: message, Until: until, Denied: refused.Denied}
}

// soonest returns the earlier of two times that are not zero.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
