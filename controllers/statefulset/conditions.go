// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// setConditions sets every condition of the status, one function each.
//
// A reconciliation that failed before it had a plan says only that.
func setConditions(s *scope, failure error) {
	if !s.planned {
		setStalled(s, failure)
		return
	}
	p := progressOf(s)
	setReady(s, p)
	setProgressing(s, p)
	setStalled(s, failure)
	setFailed(s, appsv1beta1.ConditionFailedCreatePod, appsv1beta1.ReasonFailedCreate, s.scaleErrs)
	setFailed(s, appsv1beta1.ConditionFailedUpdatePod, appsv1beta1.ReasonFailedUpdatePodInPlace, slices.Concat(s.updateErrs, denials(s.plan)))
}

// progress says in one word and a sentence how far the set has come.
type progress struct {
	// ready: everything is as wanted; moving: the operator is at work on it.
	ready, moving bool
	reason        string
	message       string
}

func progressOf(s *scope) progress {
	c := s.counts
	wanted := len(s.ordinals)
	switch {
	case len(s.members) != wanted || len(s.condemned) > 0:
		return progress{moving: true, reason: appsv1beta1.ReasonScaling,
			message: fmt.Sprintf("%d of %d pods exist, %d are to be deleted", len(s.members), wanted, len(s.condemned))}
	case c.pending > 0 && s.set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType:
		return s.resting(c, appsv1beta1.ReasonOnDelete, fmt.Sprintf("%d pods get the new revision when they are deleted", c.pending))
	case c.pending > 0 && s.set.IsPaused():
		return progress{reason: appsv1beta1.ReasonPaused, message: fmt.Sprintf("paused with %d pods to update", c.pending)}
	case c.pending > 0:
		return progress{moving: true, reason: appsv1beta1.ReasonUpdating,
			message: fmt.Sprintf("%d of %d pods are to be updated to revision %s", c.pending, wanted-c.kept, s.update.Name())}
	case c.kept > 0:
		return s.resting(c, appsv1beta1.ReasonPartitionReached, fmt.Sprintf("partition keeps %d pods at their revision", c.kept))
	default:
		return s.resting(c, appsv1beta1.ReasonAvailable, fmt.Sprintf("%d pods are available", c.available))
	}
}

// resting is the progress of a set with nothing left to update: it is ready when
// all pods are available.
func (s *scope) resting(c counts, reason, message string) progress {
	if int(c.available) == len(s.ordinals) {
		return progress{ready: true, reason: reason, message: message}
	}
	return progress{moving: true, reason: appsv1beta1.ReasonUpdating,
		message: fmt.Sprintf("%d of %d pods are available", c.available, len(s.ordinals))}
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
	if invalid := (specError{}); errors.As(failure, &invalid) {
		setCondition(s, appsv1beta1.ConditionStalled, true, appsv1beta1.ReasonInvalidSpec, invalid.Error())
		return
	}
	if failure != nil {
		return // it passes by itself; what was reported stands
	}
	for _, err := range slices.Concat(s.updateErrs, s.scaleErrs) {
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			setCondition(s, appsv1beta1.ConditionStalled, true, appsv1beta1.ReasonRefused, summary([]error{err}))
			return
		}
	}
	for _, b := range s.plan.Blockers {
		if b.State == inplace.Stuck {
			setCondition(s, appsv1beta1.ConditionStalled, true, b.Reason, fmt.Sprintf("pod %s: %s", b.Pod.Name, b.Message))
			return
		}
	}
	setCondition(s, appsv1beta1.ConditionStalled, false, appsv1beta1.ReasonNotStalled, "nothing needs help")
}

// denials returns an error for each change that the API server is known to
// refuse, and that is not written therefore.
func denials(plan inplace.Plan) []error {
	var errs []error
	said := sets.New[string]()
	for _, b := range plan.Blockers {
		if b.Reason == inplace.ReasonAdmissionDenied && !said.Has(b.Message) {
			said.Insert(b.Message)
			errs = append(errs, errors.New(b.Message))
		}
	}
	return errs
}

// setFailed sets a condition that is only there while something fails.
func setFailed(s *scope, conditionType, reason string, errs []error) {
	if len(errs) == 0 {
		meta.RemoveStatusCondition(&s.set.Status.Conditions, conditionType)
		return
	}
	setCondition(s, conditionType, true, reason, summary(errs))
}

// maxMessage keeps the summary of errors well below the 32 KiB that a message of
// a condition may have, and readable.
const maxMessage = 1024

// summary says the first errors in full, and how many there are more.
func summary(errs []error) string {
	message := errors.Join(errs[:min(len(errs), maxFailures)]...).Error()
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	if more := len(errs) - maxFailures; more > 0 {
		message += fmt.Sprintf("\nand %d more", more)
	}
	return message
}

func setCondition(s *scope, conditionType string, isTrue bool, reason, message string) {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(&s.set.Status.Conditions, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		ObservedGeneration: s.set.Generation, LastTransitionTime: metav1.NewTime(s.now).Rfc3339Copy(),
	})
}
