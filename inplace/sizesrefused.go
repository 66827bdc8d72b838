// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"time"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
)

// resizeRefusal says in the terms of this package why a pod cannot be resized.
func resizeRefusal(refused *resize.Refusal) *Refusal {
	return &Refusal{Reason: string(refused.Reason), Field: refused.Field, Message: refused.Message}
}

// verdictOn returns what the workload wants of a pod whose resize is refused, and
// whether the refusal is about that at all. That a request or a limit is to be
// removed is not: as other fields, it cannot be changed in place.
func (t Target) verdictOn(refused *Refusal) (resize.Verdict, bool) {
	switch refused.Reason {
	case ReasonResizeInfeasible, string(resize.NodeUnsupported):
		return t.resizePolicy().OnRefusal(true), true
	case ReasonResizeDenied:
		return t.resizePolicy().OnRefusal(false), true
	default:
		return resize.Keep, false
	}
}

// refuseSizes handles what is refused of a pod that stays at its revision.
func refuseSizes(before *observed, target Target, refused *Refusal, now time.Time) Step {
	verdict, isResize := target.verdictOn(refused)
	step := Step{Reason: refused.Reason, Message: refused.Message}
	isOurs := len(before.own)+len(before.due()) > 0
	switch {
	case verdict == resize.Recreate && isOurs:
		return evict(before.pod, target, step, now)
	case refused.Reason == string(resize.Removed) && !target.frozen && target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType:
		return remove(before.pod, target, step, now)
	case isResize:
		step.State, step.Message = Stuck, target.kept(step.Reason, step.Message)
		return step
	default:
		step.State = Stuck
		return step
	}
}

// kept says of a pod that stays at its old size why, and what to do.
func (t Target) kept(reason, why string) string {
	option := "onError"
	if reason == ReasonResizeInfeasible || reason == string(resize.NodeUnsupported) {
		option = "onInfeasible"
	}
	if t.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return fmt.Sprintf("%s; %s keeps the pod at its old size: change the size in the template", why, t.policyIs(t.Policy))
	}
	if reason == ReasonResizeError {
		why += "; the size is in force when the container is restarted"
	}
	if t.irreplaceable != nil {
		return fmt.Sprintf("%s; the pod keeps its old size, since the API server would not accept a new pod: %s", why, t.irreplaceable.Message)
	}
	return fmt.Sprintf("%s; the pod keeps its old size: change the size in the template, or allow recreation with %s", why, t.recreatesOn(option))
}
