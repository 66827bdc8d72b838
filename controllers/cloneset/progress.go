// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// setProgressing sets the condition Progressing, which is there only with
// progressDeadlineSeconds, in the words of OpenKruise.
//
// lastUpdateTime is when the set last got on: the deadline runs from there. So
// progress extends it, and what comes after it was exceeded, a new revision or
// progress after all, starts it again.
func setProgressing(s *scope, before appsv1beta1.CloneSetStatus) {
	deadline, limited := s.set.GetProgressDeadline()
	if !limited {
		conditions{s}.Remove(appsv1beta1.ConditionProgressing)
		return
	}
	condition := appsv1beta1.CloneSetCondition{Type: appsv1beta1.ConditionProgressing, Status: metav1.ConditionTrue}
	if condition.Reason, condition.Message = restOf(s); condition.Reason != "" {
		putCondition(s, condition)
		if condition.Reason == appsv1beta1.ReasonCloneSetUpdated { // no deadline runs, see progressedAt
			findCondition(s.set.Status.Conditions, condition.Type).LastUpdateTime = metav1.Time{}
		}
		return
	}
	since := progressedAt(before, s.set.Status, s.Now)
	condition.Reason, condition.Message = appsv1beta1.ReasonCloneSetUpdated, appsv1beta1.MessageCloneSetUpdated
	if end := since.Add(deadline); s.Now.Before(end) {
		s.Requeue.Within(end.Sub(s.Now))
	} else {
		condition.Status, condition.Reason = metav1.ConditionFalse, appsv1beta1.ReasonProgressDeadlineExceeded
		condition.Message = fmt.Sprintf(appsv1beta1.MessageProgressDeadlineExceeded, s.set.Status.UpdateRevision)
	}
	condition.LastUpdateTime = metav1.NewTime(since).Rfc3339Copy()
	putCondition(s, condition)
}

// restOf returns why there is no progress to wait for; nothing if there is.
func restOf(s *scope) (reason, message string) {
	set, status, replicas := s.set, s.set.Status, s.set.GetReplicas()
	isWhole := status.Replicas-s.excluded == replicas && status.AvailableReplicas == replicas
	isUpdated := isWhole && status.UpdatedAvailableReplicas == replicas
	switch {
	case isUpdated && s.excluded == 0:
		return appsv1beta1.ReasonCloneSetAvailable, appsv1beta1.MessageCloneSetAvailable
	case set.GetUpdateStrategyType() == appsv1beta1.OnDeleteCloneSetUpdateStrategyType && isWhole:
		// What comes next is for users to do: they have no deadline.
		return appsv1beta1.ReasonCloneSetUpdated, appsv1beta1.MessageCloneSetUpdated
	case set.IsPaused():
		return appsv1beta1.ReasonCloneSetPaused, appsv1beta1.MessageCloneSetPaused
	case isUpdated:
		// A hook holds pods that are to go: its owner has no deadline.
		return appsv1beta1.ReasonCloneSetUpdated, appsv1beta1.MessageCloneSetUpdated
	case set.GetPartition() > 0 && isWhole && status.UpdatedAvailableReplicas >= status.ExpectedUpdatedReplicas:
		return appsv1beta1.ReasonProgressPartitionAvailable, appsv1beta1.MessageProgressPartitionAvailable
	default:
		return "", ""
	}
}

// progressedAt returns when the set last got on: now, if it does not say so yet.
func progressedAt(before, after appsv1beta1.CloneSetStatus, now time.Time) time.Time {
	last := findCondition(before.Conditions, appsv1beta1.ConditionProgressing)
	switch {
	case last == nil, last.LastUpdateTime.IsZero():
		return now
	case last.Reason != appsv1beta1.ReasonCloneSetUpdated && last.Reason != appsv1beta1.ReasonProgressDeadlineExceeded:
		return now // it was at rest, and goes on
	case before.UpdateRevision != after.UpdateRevision, hasProgressed(before, after):
		return now
	default:
		return last.LastUpdateTime.Time
	}
}

// hasProgressed reports whether more pods are as wanted than before.
func hasProgressed(before, after appsv1beta1.CloneSetStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.UpdatedReadyReplicas > before.UpdatedReadyReplicas ||
		after.UpdatedAvailableReplicas > before.UpdatedAvailableReplicas ||
		after.AvailableReplicas > before.AvailableReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas
}
