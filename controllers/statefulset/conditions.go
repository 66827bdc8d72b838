// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// setConditions sets every condition of the status, one function each.
//
// A reconciliation that failed before it had a plan says only that. If that needs
// somebody, nothing is ready: Ready=True would be of the spec before.
func setConditions(s *scope, failure error) {
	if !s.Planned {
		if stall, known := workload.StallBeforePlan(failure); known {
			setReady(s, progress{reason: stall.Reason, message: stall.Message})
			setProgressing(s, progress{reason: stall.Reason, message: stall.Message})
		}
		setStalled(s, failure)
		return
	}
	p := progressOf(s)
	setReady(s, p)
	setProgressing(s, p)
	setStalled(s, failure)
	setFailed(s, appsv1beta1.ConditionFailedCreatePod, appsv1beta1.ReasonFailedCreate, s.Scaling.Errs)
	setFailed(s, appsv1beta1.ConditionFailedUpdatePod, appsv1beta1.ReasonFailedUpdatePodInPlace, slices.Concat(s.Updating.Errs, workload.Denials(s.Plan)))
}

// progress says in one word and a sentence how far the set has come.
type progress struct {
	// ready: everything is as wanted; moving: the operator is at work on it.
	ready, moving bool
	reason        string
	message       string
}

func progressOf(s *scope) progress {
	c, claims := s.counts, s.claimCounts
	wanted := s.replicas
	switch {
	case len(s.members) != wanted || len(s.condemned) > 0:
		return progress{moving: true, reason: appsv1beta1.ReasonScaling,
			message: inplace.Scaling(len(s.members), wanted, len(s.condemned)) + workload.WithheldMessage(s.withheld)}
	case c.pending > 0 && s.set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType:
		return s.resting(c, appsv1beta1.ReasonOnDelete, inplace.WhenDeleted(c.pending))
	case c.pending > 0 && s.set.IsPaused():
		return progress{reason: appsv1beta1.ReasonPaused, message: "paused with " + inplace.Pods(c.pending) + " to update"}
	case c.pending > 0:
		return progress{moving: true, reason: appsv1beta1.ReasonUpdating,
			message: fmt.Sprintf("%d of %d pods are to be updated to revision %s", c.pending, wanted-c.kept, s.Revisions.Update.Name()) +
				workload.Undrained(s.Plan) + workload.FirstBlocker(s.Plan)}
	case claims.Moving > 0:
		return progress{moving: true, reason: appsv1beta1.ReasonUpdatingClaims,
			message: fmt.Sprintf("%d claims are on their way to their templates, %d are blocked", claims.Moving, claims.Blocked)}
	case claims.Blocked > 0:
		return progress{reason: appsv1beta1.ReasonClaimsBlocked,
			message: fmt.Sprintf("%d claims do not follow their templates: %s", claims.Blocked, claims.Message)}
	case c.kept > 0:
		return s.resting(c, appsv1beta1.ReasonPartitionReached, "partition keeps "+inplace.PodsThat(c.kept, "at its revision", "at their revision"))
	default:
		return s.resting(c, appsv1beta1.ReasonAvailable, inplace.PodsThat(c.available, "is", "are")+" available")
	}
}

// resting is the progress of a set with nothing left to update: it is ready when
// all pods are available.
func (s *scope) resting(c counts, reason, message string) progress {
	if int(c.available) == s.replicas {
		return progress{ready: true, reason: reason, message: message}
	}
	return progress{moving: true, reason: appsv1beta1.ReasonUpdating,
		message: fmt.Sprintf("%d of %d pods are available", c.available, s.replicas) + workload.FirstBlocker(s.Plan)}
}

func setReady(s *scope, p progress) {
	setCondition(s, appsv1beta1.ConditionReady, p.ready, p.reason, p.message)
}

func setProgressing(s *scope, p progress) {
	setCondition(s, appsv1beta1.ConditionProgressing, p.moving, p.reason, p.message)
}

// setStalled reports what needs somebody: a spec that cannot be carried out, a
// write that the server refuses, or a pod that is stuck.
func setStalled(s *scope, failure error) {
	stall, known := workload.StallBeforePlan(failure)
	switch {
	case known:
	case failure != nil:
		return // it passes by itself; what was reported stands
	default:
		stall = workload.FindStall(s.Plan, slices.Concat(s.Updating.Errs, s.Scaling.Errs))
	}
	setCondition(s, appsv1beta1.ConditionStalled, stall.Stalled, stall.Reason, stall.Message)
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
