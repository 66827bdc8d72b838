// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// setConditions sets every condition of the status, one function each. before is
// the status that was reported last.
//
// A reconciliation that failed before it had a plan says only that. If that needs
// a user, nothing is ready: Ready=True would be of the spec before.
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
	setFailed(s, appsv1beta1.ConditionFailedUpdate, s.FailedUpdates())
}

// setReady says how far the set has come, in one word and a sentence.
func setReady(s *scope) {
	p := s.Progress(s.standing())
	setCondition(s, appsv1beta1.ConditionReady, p.Ready, p.Reason, p.Message)
}

// standing returns where the pods of the set stand.
func (s *scope) standing() engine.Standing {
	return engine.Standing{
		Replicas: int(s.set.GetReplicas()), Wanted: s.scaled.wanted, Existing: int(s.counts.replicas), Leaving: len(s.outgoing), Withheld: s.scaled.withheld,
		Available: int(s.counts.available), Pending: int(s.counts.pending), Kept: int(s.counts.kept),
		OnDelete: s.set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType, Paused: s.set.IsPaused(),
		Revision: s.Revisions.Update.Name(), Claims: s.claimCounts,
	}
}

// setStalled reports what needs a user, or progressDeadlineSeconds without progress, which
// setProgressing has found out before.
func setStalled(s *scope, failure error) {
	stall, known := s.Stall(failure)
	if !known {
		return
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
