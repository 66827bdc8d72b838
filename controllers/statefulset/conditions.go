// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
)

// setConditions sets every condition of the status.
//
// A reconciliation that failed before it had a plan says only that. If that needs
// a user, nothing is ready: Ready=True would be of the spec before.
func setConditions(s *scope, failure error) {
	c := conditions{s}
	stall, known := s.Stall(failure)
	if s.Planned {
		p := s.Progress(s.standing())
		c.Set(appsv1beta1.ConditionReady, p.Ready, p.Reason, p.Message)
		c.Set(appsv1beta1.ConditionProgressing, p.Moving, p.Reason, p.Message)
	} else if stall.Stalled {
		c.Set(appsv1beta1.ConditionReady, false, stall.Reason, stall.Message)
		c.Set(appsv1beta1.ConditionProgressing, false, stall.Reason, stall.Message)
	}
	if known {
		c.Set(appsv1beta1.ConditionStalled, stall.Stalled, stall.Reason, stall.Message)
	}
	if s.Planned {
		engine.SetFailing(c, appsv1beta1.ConditionFailedCreatePod, appsv1beta1.ReasonFailedCreate, s.Scaling.Errs)
		engine.SetFailing(c, appsv1beta1.ConditionFailedUpdatePod, appsv1beta1.ReasonFailedUpdatePodInPlace, s.FailedUpdates())
	}
}

// standing returns where the pods of the set stand.
func (s *scope) standing() engine.Standing {
	return engine.Standing{
		Replicas: s.replicas, Wanted: s.replicas, Existing: len(s.members), Leaving: len(s.condemned), Withheld: s.withheld,
		Available: int(s.counts.Available), Pending: int(s.counts.pending), Kept: int(s.counts.kept),
		OnDelete: s.set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType, Paused: s.set.IsPaused(),
		Revision: s.Revisions.Update.Name(), Claims: s.claimCounts,
	}
}

// conditions are those of the status.
type conditions struct{ *scope }

func (c conditions) Get(conditionType string) (metav1.Condition, bool) {
	condition := meta.FindStatusCondition(c.set.Status.Conditions, conditionType)
	return ptr.Deref(condition, metav1.Condition{}), condition != nil
}

func (c conditions) Remove(conditionType string) {
	meta.RemoveStatusCondition(&c.set.Status.Conditions, conditionType)
}

func (c conditions) Set(conditionType string, isTrue bool, reason, message string) {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&c.set.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		ObservedGeneration: c.set.Generation, LastTransitionTime: metav1.NewTime(c.Now).Rfc3339Copy(),
	})
}
