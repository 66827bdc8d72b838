// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// Conditions are those of a workload, in the form that its kind has for them.
type Conditions interface {
	// Get returns the one of a type, and whether there is one.
	Get(conditionType string) (metav1.Condition, bool)
	// Set sets one as of now. One that stays as it is keeps its times.
	Set(conditionType string, isTrue bool, reason, message string)
	// Remove removes the one of a type, if there is one.
	Remove(conditionType string)
}

// Conditions returns those in a list of the type that Kubernetes has for them.
func (r *Round) Conditions(list *[]metav1.Condition) Conditions { return conditions{list, r} }

type conditions struct {
	list *[]metav1.Condition
	of   *Round
}

func (c conditions) Get(conditionType string) (metav1.Condition, bool) {
	condition := meta.FindStatusCondition(*c.list, conditionType)
	return ptr.Deref(condition, metav1.Condition{}), condition != nil
}

func (c conditions) Remove(conditionType string) {
	meta.RemoveStatusCondition(c.list, conditionType)
}

func (c conditions) Set(conditionType string, isTrue bool, reason, message string) {
	status := metav1.ConditionFalse
	if isTrue {
		status = metav1.ConditionTrue
	}
	meta.SetStatusCondition(c.list, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		ObservedGeneration: c.of.Owner.GetGeneration(), LastTransitionTime: metav1.NewTime(c.of.Now).Rfc3339Copy(),
	})
}

// SetConditions sets every condition of a workload whose pods stand as standing says. failure is
// what ended the round.
//
// A round that failed before it had a plan says only that. If that needs a user, nothing is
// ready: Ready=True would be of the spec before.
func (r *Round) SetConditions(c Conditions, standing func() Standing, failure error) {
	stall, known := r.Stall(failure)
	if r.Planned {
		p := r.Progress(standing())
		c.Set(appsv1beta1.ConditionReady, p.Ready, p.Reason, p.Message)
		c.Set(appsv1beta1.ConditionProgressing, p.Moving, p.Reason, p.Message)
	} else if stall.Stalled {
		c.Set(appsv1beta1.ConditionReady, false, stall.Reason, stall.Message)
		c.Set(appsv1beta1.ConditionProgressing, false, stall.Reason, stall.Message)
	}
	if known {
		c.Set(appsv1beta1.ConditionStalled, stall.Stalled, stall.Reason, stall.Message)
	}
	if r.Planned {
		SetFailing(c, appsv1beta1.ConditionFailedCreatePod, appsv1beta1.ReasonFailedCreate, r.Scaling.Errs)
		SetFailing(c, appsv1beta1.ConditionFailedUpdatePod, appsv1beta1.ReasonFailedUpdatePodInPlace, r.FailedUpdates())
	}
}

// SetFailing sets a condition that is there only while something fails.
func SetFailing(c Conditions, conditionType, reason string, errs []error) {
	if len(errs) == 0 {
		c.Remove(conditionType)
		return
	}
	c.Set(conditionType, true, reason, workload.Summary(errs))
}

// Rollout returns what the metrics tell of the round, as the conditions do.
func (r *Round) Rollout(c Conditions) workload.Rollout {
	rollout := workload.Rollout{Planned: r.Planned, Plan: r.Plan, Failed: r.Result.Failed}
	if r.Planned {
		rollout.Revision = r.Revisions.Update.Name()
	}
	if stalled, ok := c.Get(appsv1beta1.ConditionStalled); ok && stalled.Status == metav1.ConditionTrue {
		rollout.Stalled = stalled.Reason
	}
	if ready, ok := c.Get(appsv1beta1.ConditionReady); ok && ready.Status != metav1.ConditionTrue {
		rollout.Since = ready.LastTransitionTime.Time
	}
	return rollout
}
