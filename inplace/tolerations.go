// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// The API server lets a live pod get more tolerations, and other tolerationSeconds of those that
// it has; none goes. (ValidatePodUpdate in pkg/apis/core/validation of k8s.io/kubernetes.)

// takeTolerations takes the tolerations out of the fields of a template, and returns them. What
// this release does not know of them would be lost: then they stay where they are.
func takeTolerations(fields map[string]any) []corev1.Toleration {
	list, _, _ := unstructured.NestedFieldNoCopy(fields, "spec", "tolerations")
	spec := corev1.PodSpec{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(map[string]any{"tolerations": list}, &spec, true)
	if err != nil {
		return nil
	}
	unstructured.RemoveNestedField(fields, "spec", "tolerations")
	return spec.Tolerations
}

// refuseRemovedTolerations objects to tolerations that a live pod would have to lose.
func refuseRemovedTolerations(from, to *Template) *Refusal {
	for i, toleration := range from.tolerations {
		if indexOfToleration(to.tolerations, toleration) >= 0 {
			continue
		}
		field := fmt.Sprintf("spec.tolerations[%d]", i)
		return &Refusal{
			Reason: ReasonFieldImmutable, Field: field,
			Message: fmt.Sprintf("%s (%s) was removed, and the API server lets no live pod lose a toleration", field, taintOf(toleration)),
		}
	}
	return nil
}

// taintOf returns the taint that a toleration is of, as kubectl spells taints.
func taintOf(toleration corev1.Toleration) string {
	taint := corev1.Taint{Key: cmp.Or(toleration.Key, "*"), Value: toleration.Value, Effect: cmp.Or(toleration.Effect, "*")}
	return taint.ToString()
}

// tolerationsOf returns all tolerations that a live pod is to have after a change of those of its
// template; nil if nothing is to be written. Those of the template are the first, as in a new pod:
// the first one that matches a taint counts. Those that admission and controllers have given to
// the pod follow.
func tolerationsOf(live, from, to []corev1.Toleration) []corev1.Toleration {
	if apiequality.Semantic.DeepEqual(from, to) {
		return nil
	}
	wanted := make([]corev1.Toleration, 0, len(to)+len(live))
	for _, toleration := range to {
		if i := indexOfToleration(live, toleration); i >= 0 {
			toleration.Operator = live[i].Operator // the API server takes another spelling for another toleration
			if live[i].TolerationSeconds == nil && !isEndless(from, toleration) {
				toleration.TolerationSeconds = nil // the controller of DaemonSets gives this to its pods
			}
		}
		wanted = append(wanted, toleration)
	}
	for _, toleration := range live {
		if indexOfToleration(to, toleration) < 0 {
			wanted = append(wanted, toleration)
		}
	}
	if apiequality.Semantic.DeepEqual(wanted, live) {
		return nil
	}
	return wanted
}

// isEndless reports whether a list has the toleration of the same taint without an end.
func isEndless(list []corev1.Toleration, toleration corev1.Toleration) bool {
	i := indexOfToleration(list, toleration)
	return i >= 0 && list[i].TolerationSeconds == nil
}

// otherTolerations returns the tolerations in which a live pod, which has those of one template,
// differs from another template.
func otherTolerations(live, at, wanted []corev1.Toleration) []corev1.Toleration {
	if other := tolerationsOf(live, at, wanted); other != nil {
		return other
	}
	var tooMany []corev1.Toleration
	for _, toleration := range at {
		if indexOfToleration(wanted, toleration) < 0 && indexOfToleration(live, toleration) >= 0 {
			tooMany = append(tooMany, toleration)
		}
	}
	return tooMany
}

// indexOfToleration returns the place of the toleration of the same taint in a list; -1 if there
// is none. For how long it is tolerated makes no difference.
func indexOfToleration(list []corev1.Toleration, toleration corev1.Toleration) int {
	toleration = withOperator(toleration)
	return slices.IndexFunc(list, func(t corev1.Toleration) bool {
		t = withOperator(t)
		return t.MatchToleration(&toleration)
	})
}

// withOperator returns a toleration with the operator that it has by default.
func withOperator(toleration corev1.Toleration) corev1.Toleration {
	if toleration.Operator == "" {
		toleration.Operator = corev1.TolerationOpEqual
	}
	return toleration
}
