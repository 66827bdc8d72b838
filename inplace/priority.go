// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// Priority is how early a pod is updated. Priorities of one strategy are
// compared number by number, the highest first.
type Priority []int64

// Compare orders priorities, the highest first, for slices.SortStableFunc.
func (p Priority) Compare(other Priority) int {
	return slices.Compare(other, p)
}

// Priorities returns the function that gives pods with the labels their
// priority. Terms that cannot be read match no pod; without terms, all pods have
// the same priority. If a strategy has weights, its orders have no effect.
func Priorities(strategy *appsv1beta1.UpdatePriorityStrategy) func(labels.Set) Priority {
	switch {
	case strategy == nil:
		return func(labels.Set) Priority { return nil }
	case len(strategy.WeightPriority) > 0:
		return byWeight(strategy.WeightPriority)
	default:
		return byOrder(strategy.OrderPriority)
	}
}

// byWeight gives the sum of the weights of all terms that match.
func byWeight(terms []appsv1beta1.UpdatePriorityWeightTerm) func(labels.Set) Priority {
	selectors := make([]labels.Selector, len(terms))
	for i := range terms {
		selector, err := metav1.LabelSelectorAsSelector(&terms[i].MatchSelector)
		if err != nil {
			selector = labels.Nothing()
		}
		selectors[i] = selector
	}
	return func(pod labels.Set) Priority {
		var sum int64
		for i := range terms {
			if selectors[i].Matches(pod) {
				sum += int64(terms[i].Weight)
			}
		}
		return Priority{sum}
	}
}

// absent is less than any number at the end of a label's value.
const absent = -1

// byOrder gives a number for each term: the one at the end of the label's value,
// or absent.
//
// A term that leaves pods equal leaves them to the next one.
func byOrder(terms []appsv1beta1.UpdatePriorityOrderTerm) func(labels.Set) Priority {
	return func(pod labels.Set) Priority {
		priority := make(Priority, len(terms))
		for i, term := range terms {
			priority[i] = absent
			if value, ok := pod[term.OrderedKey]; ok {
				priority[i] = trailingNumber(value)
			}
		}
		return priority
	}
}

// trailingNumber returns the number at the end of a label's value: 10 of
// "batch-10", 0 of "batch". A number that is too large counts as the largest.
func trailingNumber(value string) int64 {
	start := len(strings.TrimRight(value, "0123456789"))
	if start == len(value) {
		return 0
	}
	// Of digits, the only error is a number out of range, and then the number
	// that is returned is the largest.
	number, _ := strconv.ParseInt(value[start:], 10, 64)
	return number
}
