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

// setConditions sets every condition of the status. before is the status that was
// reported last.
//
// A reconciliation that failed before it had a plan says only that. If that needs
// a user, nothing is ready: Ready=True would be of the spec before.
func setConditions(s *scope, before appsv1beta1.CloneSetStatus, failure error) {
	c := conditions{s}
	stall, known := s.Stall(failure)
	if s.Planned {
		p := s.Progress(s.standing())
		c.Set(appsv1beta1.ConditionReady, p.Ready, p.Reason, p.Message)
		setProgressing(s, before)
	} else if stall.Stalled {
		c.Set(appsv1beta1.ConditionReady, false, stall.Reason, stall.Message)
	}
	if known {
		stall = s.orOverdue(stall)
		c.Set(appsv1beta1.ConditionStalled, stall.Stalled, stall.Reason, stall.Message)
	}
	if s.Planned {
		// Their reasons are their types: OpenKruise gives them none.
		engine.SetFailing(c, appsv1beta1.ConditionFailedScale, appsv1beta1.ConditionFailedScale, s.Scaling.Errs)
		engine.SetFailing(c, appsv1beta1.ConditionFailedUpdate, appsv1beta1.ConditionFailedUpdate, s.FailedUpdates())
	}
}

// standing returns where the pods of the set stand.
func (s *scope) standing() engine.Standing {
	return engine.Standing{
		Replicas: int(s.set.GetReplicas()), Wanted: s.scaled.wanted, Existing: int(s.counts.Replicas), Leaving: len(s.outgoing), Withheld: s.scaled.withheld,
		Available: int(s.counts.Available), Pending: int(s.counts.pending), Kept: int(s.counts.kept),
		OnDelete: s.set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType, Paused: s.set.IsPaused(),
		Revision: s.Revisions.Update.Name(), Claims: s.claimCounts,
	}
}

// orOverdue returns a stall, or the end of progressDeadlineSeconds if there is none.
func (s *scope) orOverdue(stall workload.Stall) workload.Stall {
	progressing, _ := conditions{s}.Get(appsv1beta1.ConditionProgressing)
	if !stall.Stalled && progressing.Reason == appsv1beta1.ReasonProgressDeadlineExceeded {
		return workload.Stall{Stalled: true, Reason: progressing.Reason, Message: progressing.Message}
	}
	return stall
}

// conditions are those of the status.
type conditions struct{ *scope }

func (c conditions) Get(conditionType string) (metav1.Condition, bool) {
	condition := findCondition(c.set.Status.Conditions, conditionType)
	if condition == nil {
		return metav1.Condition{}, false
	}
	return metav1.Condition{
		Type: condition.Type, Status: condition.Status, ObservedGeneration: condition.ObservedGeneration,
		LastTransitionTime: condition.LastTransitionTime, Reason: condition.Reason, Message: condition.Message,
	}, true
}

func (c conditions) Set(conditionType string, isTrue bool, reason, message string) {
	condition := appsv1beta1.CloneSetCondition{Type: conditionType, Status: metav1.ConditionFalse, Reason: reason, Message: message}
	if isTrue {
		condition.Status = metav1.ConditionTrue
	}
	putCondition(c.scope, condition)
}

func (c conditions) Remove(conditionType string) {
	c.set.Status.Conditions = slices.DeleteFunc(c.set.Status.Conditions, func(one appsv1beta1.CloneSetCondition) bool {
		return one.Type == conditionType
	})
}

func findCondition(conditions []appsv1beta1.CloneSetCondition, conditionType string) *appsv1beta1.CloneSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1beta1.CloneSetCondition) bool { return c.Type == conditionType })
	if i < 0 {
		return nil
	}
	return &conditions[i]
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
