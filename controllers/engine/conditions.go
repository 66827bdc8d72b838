// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
