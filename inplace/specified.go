// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// specifiedDelete is why a pod is recreated that somebody has labeled.
const specifiedDelete = "the label " + appsv1beta1.SpecifiedDeleteKey + " asks for it"

// asksForDeletion reports whether somebody asks, by a label of any value, for a
// pod to be deleted and made again.
//
// A label that the pod has from its template is no request: the next pod would
// have it, too, and pods would be recreated for ever.
func asksForDeletion(facts PodFacts) bool {
	if _, labeled := facts.Pod.Labels[appsv1beta1.SpecifiedDeleteKey]; !labeled || facts.Pod.DeletionTimestamp != nil {
		return false
	}
	if facts.From == nil {
		return true
	}
	_, fromTemplate := facts.From.Template.Labels()[appsv1beta1.SpecifiedDeleteKey]
	return !fromTemplate
}
