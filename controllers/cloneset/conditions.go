// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// setConditions sets every condition of the status, one function each. before is
// the status that was reported last.
//
// A reconciliation that failed before it had a plan says only that. If that needs
// somebody, nothing is ready: Ready=True would be of the spec before.
func setConditions(s *scope, before appsv1beta1.CloneSetStatus, failure error) {
	if !s.Planned {
		if stall, known := workload.StallBeforePlan(failure); known {
			setCondition(s, appsv1beta1.ConditionReady, false, stall.Reason, stall.Message)
		}
		setStalled(s, failure)
		return
	}
	setReady(s)
	setProgressing(s, before)
	setStalled(s, failure)
	setFailed(s, appsv1beta1.ConditionFailedScale, s.Scaling.Errs)
	setFailed(s, appsv1beta1.ConditionFailedUpdate, slices.Concat(s.Updating.Errs, workload.Denials(s.Plan)))
}

// setReady says how far the set has come, in one word and a sentence.
func setReady(s *scope) {
	c, claims, replicas := s.counts, s.claimCounts, s.set.GetReplicas()
	var reason, message string
	switch {
	case int(c.replicas) != s.scaled.wanted || len(s.outgoing) > 0:
		reason = appsv1beta1.ReasonScaling
		message = inplace.Scaling(int(c.replicas), s.scaled.wanted, len(s.outgoing)) + workload.WithheldMessage(s.scaled.withheld)
	case c.pending > 0 && s.set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType:
		reason = appsv1beta1.ReasonOnDelete
		message = inplace.WhenDeleted(c.pending)
	case c.pending > 0 && s.set.IsPaused():
		reason = appsv1beta1.ReasonPaused
		message = "paused with " + inplace.Pods(c.pending) + " to update"
	case c.pending > 0:
		reason = appsv1beta1.ReasonUpdating
		message = fmt.Sprintf("%d of %d pods are to be updated to revision %s", c.pending, replicas-c.kept, s.Revisions.Update.Name()) +
			workload.Undrained(s.Plan) + workload.FirstBlocker(s.Plan)
	case c.available < replicas:
		reason = appsv1beta1.ReasonUpdating
		message = fmt.Sprintf("%d of %d pods are available", c.available, replicas) + workload.FirstBlocker(s.Plan)
	case claims.Moving > 0:
		reason = appsv1beta1.ReasonUpdatingClaims
		message = fmt.Sprintf("%d claims are on their way to their templates, %d are blocked", claims.Moving, claims.Blocked)
	case claims.Blocked > 0:
		reason = appsv1beta1.ReasonClaimsBlocked
		message = fmt.Sprintf("%d claims do not follow their templates: %s", claims.Blocked, claims.Message)
	case c.kept > 0:
		reason = appsv1beta1.ReasonPartitionReached
		message = "partition keeps " + inplace.PodsThat(c.kept, "at its revision", "at their revision")
	default:
		reason = appsv1beta1.ReasonAvailable
		message = inplace.PodsThat(c.available, "is", "are") + " available"
	}
	isReady := c.available == replicas &&
		slices.Contains([]string{appsv1beta1.ReasonAvailable, appsv1beta1.ReasonPartitionReached, appsv1beta1.ReasonOnDelete}, reason)
	setCondition(s, appsv1beta1.ConditionReady, isReady, reason, message)
}

// setStalled reports what needs somebody: a spec that cannot be carried out, a
// write that the server refuses, a pod that is stuck, or progressDeadlineSeconds
// without progress, which setProgressing has found out before.
func setStalled(s *scope, failure error) {
	stall, known := workload.StallBeforePlan(failure)
	switch {
	case known:
	case failure != nil:
		return // it passes by itself; what was reported stands
	default:
		stall = workload.FindStall(s.Plan, slices.Concat(s.Updating.Errs, s.Scaling.Errs))
	}
	progressing := findCondition(s.set.Status.Conditions, appsv1beta1.ConditionProgressing)
	if !stall.Stalled && progressing != nil && progressing.Reason == appsv1beta1.ReasonProgressDeadlineExceeded {
		stall = workload.Stall{Stalled: true, Reason: progressing.Reason, Message: progressing.Message}
	}
	setCondition(s, appsv1beta1.ConditionStalled, stall.Stalled, stall.Reason, stall.Message)
}

// setFailed sets a condition that is only there while something fails. Its reason
// is its type: OpenKruise gives it none.
func setFailed(s *scope, conditionType string, errs []error) {
	if len(errs) == 0 {
		removeCondition(s, conditionType)
		return
	}
	setCondition(s, conditionType, true, conditionType, workload.Summary(errs))
}

func findCondition(conditions []appsv1beta1.CloneSetCondition, conditionType string) *appsv1beta1.CloneSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1beta1.CloneSetCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}

func removeCondition(s *scope, conditionType string) {
	s.set.Status.Conditions = slices.DeleteFunc(s.set.Status.Conditions, func(c appsv1beta1.CloneSetCondition) bool {
		return c.Type == conditionType
	})
}

func setCondition(s *scope, conditionType string, isTrue bool, reason, message string) {
	condition := appsv1beta1.CloneSetCondition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if isTrue {
		condition.Status = metav1.ConditionTrue
	}
	putCondition(s, condition)
}

// putCondition puts a condition into the status. Unless it says when it was
// updated, that is now, if it says something else than before.
func putCondition(s *scope, condition appsv1beta1.CloneSetCondition) {
	now := metav1.NewTime(s.Now).Rfc3339Copy()
	isDated := !condition.LastUpdateTime.IsZero()
	if !isDated {
		condition.LastUpdateTime = now
	}
	condition.ObservedGeneration, condition.LastTransitionTime = s.set.Generation, now
	before := findCondition(s.set.Status.Conditions, condition.Type)
	if before == nil {
		s.set.Status.Conditions = append(s.set.Status.Conditions, condition)
		return
	}
	if before.Status == condition.Status {
		condition.LastTransitionTime = before.LastTransitionTime
	}
	if !isDated && before.Status == condition.Status && before.Reason == condition.Reason && before.Message == condition.Message {
		condition.LastUpdateTime = before.LastUpdateTime
	}
	*before = condition
}
