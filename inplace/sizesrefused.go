// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"

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
func (s *situation) verdictOn(refused *Refusal) (resize.Verdict, bool) {
	switch refused.Reason {
	case ReasonResizeInfeasible, string(resize.NodeUnsupported):
		return s.resizePolicy().OnRefusal(true), true
	case ReasonResizeDenied:
		return s.resizePolicy().OnRefusal(false), true
	default:
		return resize.Keep, false
	}
}

// recreateOrKeepSizes recreates a pod at its revision whose sizes are refused, if the workload
// wants that; else the pod keeps the sizes that it has.
func (s *situation) recreateOrKeepSizes(refused *Refusal) Step {
	verdict, isResize := s.verdictOn(refused)
	isOurs := len(s.observed.own)+len(s.observed.due()) > 0
	switch {
	case verdict == resize.Recreate && isOurs:
		return s.evict(refused.Reason, refused.Message)
	case refused.Reason == string(resize.Removed) && !s.frozen && s.target.Policy != appsv1beta1.InPlaceOnlyPodUpdateStrategyType:
		return s.remove(refused.Reason, refused.Message)
	case isResize:
		return Step{State: Stuck, Reason: refused.Reason, Message: s.keptSizesMessage(refused.Reason, refused.Message)}
	default:
		return Step{State: Stuck, Reason: refused.Reason, Message: refused.Message}
	}
}

// keptSizesMessage says why a pod keeps its old size, and what the user can do.
func (s *situation) keptSizesMessage(reason, why string) string {
	option := "onError"
	if reason == ReasonResizeInfeasible || reason == string(resize.NodeUnsupported) {
		option = "onInfeasible"
	}
	if s.target.Policy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		return fmt.Sprintf("%s; %s keeps the pod at its old size: change the size in the template", why, s.target.policyIs(s.target.Policy))
	}
	if reason == ReasonResizeError {
		why += "; the size is in force when the container is restarted"
	}
	if refused := s.facts.Irreplaceable; refused != nil {
		because := "the API server would not accept a new pod"
		if refused.Reason == ReasonImageNotPullable || refused.Reason == ReasonImagePull {
			because = "a new pod needs other images"
		}
		return fmt.Sprintf("%s; the pod keeps its old size, since %s: %s", why, because, refused.Message)
	}
	return fmt.Sprintf("%s; the pod keeps its old size: change the size in the template, or allow recreation with %s", why, s.target.recreatesOn(option))
}
