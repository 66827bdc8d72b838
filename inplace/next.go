// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// Next returns the next step of a pod towards a target.
//
// Any state can be left for any target: the way is computed from what the pod
// is, not from what was intended with it before.
func Next(facts PodFacts, target Target, now time.Time) Step {
	return noteDetached(next(facts, target, now), facts)
}

func next(facts PodFacts, target Target, now time.Time) Step {
	pod := facts.Pod
	before := facts.observedAt(now)
	target.irreplaceable = before.irreplaceable
	if step := gone(before, target, now); step != nil {
		return *step
	}
	if AsksForDeletion(facts) {
		return remove(pod, target, Step{Reason: ReasonSpecifiedDelete, Message: whoAsks(facts)}, now)
	}
	if RevisionOf(pod) == target.Name {
		return finishWithClaims(facts, before, target, now)
	}
	if step := detachForClaims(facts, before, target, now); step != nil {
		return *step
	}
	if step := awaitClaims(facts, before, target, now); step != nil {
		return *step
	}
	change, refused := compareFacts(facts, before, target)
	if refused != nil && refused.Reason == ReasonSettling {
		return awaitCertainty(before, target, refused, now)
	}
	if refused != nil {
		return refuseUnlessKept(facts, before, target, refused, now)
	}
	if facts.Refused != nil {
		return turnDown(facts, before, target, now)
	}
	if refused := target.undrainable(pod, change); refused != nil {
		return refuseUndrained(before, target, refused, now)
	}
	if step := hold(before, target, change, now); step != nil {
		return *step
	}
	if step := grow(before, target, change, now); step != nil {
		return *step
	}
	if !change.Restarts() || target.keepsReady(change) {
		return patch(before, change, target, now)
	}
	if step := drain(before, target, change, now); step != nil {
		return *step
	}
	return patch(before, change, target, now)
}

// refuseUnlessKept handles what cannot change in place, where the sizes or the claims
// of the pod have no say in that.
func refuseUnlessKept(facts PodFacts, before *observed, target Target, refused *Refusal, now time.Time) Step {
	_, isResize := target.verdictOn(refused)
	switch {
	case facts.Claims.KeepPod() && !isIdle(facts.Pod):
		return keepForClaims(facts, before, target, refused, now)
	case isResize:
		return deny(before, target, refused, now)
	case refused.Reason == ReasonClaimTemplatesChanged && target.ClaimsGoWithPods && target.Policy == appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType:
		return stuck(before, target, refused, "the data of its other claims would go with the pod: have claims reused, or delete the pod yourself", now)
	default:
		return refuse(before, target, refused, now)
	}
}

// compareFacts compares the pod with the target, as far as its policy allows a
// change in place. A revision that differs in nothing is always taken in place.
func compareFacts(facts PodFacts, before *observed, target Target) (Change, *Refusal) {
	var from *Template
	if facts.From != nil {
		from = facts.From.Template
	}
	judged := target.judge(from)
	if judged.refused != nil {
		return Change{}, judged.refused
	}
	if refused := refuseOtherClaims(facts.Pod, target); refused != nil {
		return Change{}, refused
	}
	if field, differ := from.amounts.FirstDifference(target.Template.amounts); differ && target.CannotResize {
		return Change{}, &Refusal{
			Reason: ReasonResizeUnsupported, Field: field.String(),
			Message: field.String() + " was changed, and the API server does not serve pods/resize",
		}
	}
	change, refused := before.compare(from, target.Template)
	recreates := target.Policy != appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType &&
		target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType
	if refused == nil && recreates && !judged.equal {
		refused = &Refusal{Reason: ReasonPolicyReCreate, Message: policyReCreates}
	}
	return change, refused
}

// awaitCertainty lets an earlier change of a pod come to its end, where the next
// cannot be made before it is certain what a container runs.
func awaitCertainty(before *observed, target Target, why *Refusal, now time.Time) Step {
	if step := finish(before, target, now); step.State == Restarting || step.State == Stuck {
		return step
	}
	return overdue(Step{
		State: Restarting, Reason: why.Reason, Message: why.Message, Since: before.state.UpdateTimestamp.Time, Until: why.Until,
	}, target.Deadline, now)
}

// refuse handles what cannot change in place: the pod is recreated or, where the
// user wants no recreation, stays what it is.
func refuse(before *observed, target Target, refused *Refusal, now time.Time) Step {
	if target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return remove(before.pod, target, Step{Reason: refused.Reason, Message: refused.Message}, now)
	}
	return stuck(before, target, refused,
		target.policyIs(target.Policy)+" keeps the pod as it is: revert the field, or allow recreation with InPlaceIfPossible", now)
}

// stuck keeps a pod as it is, in service, that would have to be recreated.
func stuck(before *observed, target Target, refused *Refusal, why string, now time.Time) Step {
	if step := finish(before, target, now); step.State != Settled {
		return step
	}
	return Step{State: Stuck, Reason: refused.Reason, Message: refused.Message + "; " + why}
}

// finishUnlessRefused is finish for a pod whose next batch the server may refuse.
func finishUnlessRefused(facts PodFacts, before *observed, target Target, now time.Time) Step {
	step := finish(before, target, now)
	if step.Action == Recreate && step.Reason == ReasonNotRestarted && facts.Claims.KeepPod() && !isIdle(facts.Pod) {
		return keepForClaims(facts, before, target, &Refusal{Reason: step.Reason, Message: step.Message}, now)
	}
	if (step.Action == Patch || step.Action == Resize) && facts.Refused != nil {
		step = refuseSizes(before, target, facts.Refused, now)
		step.Until, step.Denied = facts.Refused.Until, facts.Refused.Denied
	}
	return step
}

// turnDown handles a change that the server refuses, or that would not come to what was asked
// for: the server undoes what has a container restarted, or gives new pods other containers.
func turnDown(facts PodFacts, before *observed, target Target, now time.Time) Step {
	if reason := facts.Refused.Reason; reason != ReasonNotRestarted && reason != ReasonInjectionChanged {
		return deny(before, target, facts.Refused, now)
	}
	step := refuseUnlessKept(facts, before, target, facts.Refused, now)
	step.Until = soonest(step.Until, facts.Refused.Until)
	return step
}

// soonest returns the earlier of two times that are not zero.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// deny keeps a pod whose change the server refuses in service as it is. It is not
// recreated, unless its new sizes are refused and the workload wants that: whoever
// wrote the rule that refuses it did not ask for it, and the rule may refuse the
// new pod as well.
func deny(before *observed, target Target, refused *Refusal, now time.Time) Step {
	if verdict, _ := target.verdictOn(refused); verdict == resize.Recreate {
		return evict(before.pod, target, Step{Reason: refused.Reason, Message: refused.Message}, now)
	}
	step := finish(before, target, now)
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
	if _, isResize := target.verdictOn(refused); isResize {
		message = target.kept(refused.Reason, message)
	}
	return Step{State: Stuck, Reason: refused.Reason, Message: message, Until: until, Denied: refused.Denied}
}
