// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// whoAsks says why a pod is recreated that is to be deleted on request.
func whoAsks(facts PodFacts) string {
	if facts.Asked {
		return "the workload names it as one to delete"
	}
	return "the label " + appsv1beta1.SpecifiedDeleteKey + " asks for it"
}

// AsksForDeletion reports whether a user asks for a pod to be deleted and made
// again: the workload names it, or it has the label with any value.
//
// A label that the pod has from its template is no request: the next pod would
// have it, too, and pods would be recreated for ever.
func AsksForDeletion(facts PodFacts) bool {
	_, labeled := facts.Pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	switch {
	case facts.Pod.DeletionTimestamp != nil:
		return false
	case facts.Asked:
		return true
	case !labeled:
		return false
	case facts.From == nil:
		return true
	}
	_, fromTemplate := facts.From.Template.Labels()[appsv1beta1.SpecifiedDeleteKey]
	return !fromTemplate
}
