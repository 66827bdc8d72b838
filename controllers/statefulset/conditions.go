// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// setConditions sets every condition of the status, one function each.
//
// A reconciliation that failed before it had a plan says only that. If that needs
// a user, nothing is ready: Ready=True would be of the spec before.
func setConditions(s *scope, failure error) {
	if !s.Planned {
		if stall, known := workload.StallBeforePlan(failure); known {
			p := engine.Progress{Reason: stall.Reason, Message: stall.Message}
			setReady(s, p)
			setProgressing(s, p)
		}
		setStalled(s, failure)
		return
	}
	p := s.Progress(s.standing())
	setReady(s, p)
	setProgressing(s, p)
	setStalled(s, failure)
	setFailed(s, appsv1beta1.ConditionFailedCreatePod, appsv1beta1.ReasonFailedCreate, s.Scaling.Errs)
	setFailed(s, appsv1beta1.ConditionFailedUpdatePod, appsv1beta1.ReasonFailedUpdatePodInPlace, s.FailedUpdates())
}

// standing returns where the pods of the set stand.
func (s *scope) standing() engine.Standing {
	return engine.Standing{
		Replicas: s.replicas, Wanted: s.replicas, Existing: len(s.members), Leaving: len(s.condemned), Withheld: s.withheld,
		Available: int(s.counts.available), Pending: s.counts.pending, Kept: s.counts.kept,
		OnDelete: s.set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType, Paused: s.set.IsPaused(),
		Revision: s.Revisions.Update.Name(), Claims: s.claimCounts,
	}
}

func setReady(s *scope, p engine.Progress) {
	setCondition(s, appsv1beta1.ConditionReady, p.Ready, p.Reason, p.Message)
}

func setProgressing(s *scope, p engine.Progress) {
	setCondition(s, appsv1beta1.ConditionProgressing, p.Moving, p.Reason, p.Message)
}

// setStalled reports what needs a user.
func setStalled(s *scope, failure error) {
	if stall, known := s.Stall(failure); known {
		setCondition(s, appsv1beta1.ConditionStalled, stall.Stalled, stall.Reason, stall.Message)
	}
}

// setFailed sets a condition that is only there while something fails.
func setFailed(s *scope, conditionType, reason string, errs []error) {
	if len(errs) == 0 {
		meta.RemoveStatusCondition(&s.set.Status.Conditions, conditionType)
		return
	}
	setCondition(s, conditionType, true, reason, workload.Summary(errs))
}

func setCondition(s *scope, conditionType string, isTrue bool, reason, message string) {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.set.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.set.Generation, LastTransitionTime: metav1.NewTime(s.Now).Rfc3339Copy(),
	})
}
