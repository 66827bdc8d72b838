// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func weight(n int32, selector metav1.LabelSelector) appsv1beta1.UpdatePriorityWeightTerm {
	return appsv1beta1.UpdatePriorityWeightTerm{Weight: n, MatchSelector: selector}
}

func having(key, value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func where(key string, operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator, Values: values}}}
}

func byKeys(keys ...string) *appsv1beta1.UpdatePriorityStrategy {
	strategy := &appsv1beta1.UpdatePriorityStrategy{}
	for _, key := range keys {
		strategy.OrderPriority = append(strategy.OrderPriority, appsv1beta1.UpdatePriorityOrderTerm{OrderedKey: key})
	}
	return strategy
}

func byWeights(terms ...appsv1beta1.UpdatePriorityWeightTerm) *appsv1beta1.UpdatePriorityStrategy {
	return &appsv1beta1.UpdatePriorityStrategy{WeightPriority: terms}
}

// The pods are given from 0 up; order holds their numbers as they go.
func TestPriorities(t *testing.T) {
	type pods = []labels.Set
	for name, tc := range map[string]struct {
		strategy *appsv1beta1.UpdatePriorityStrategy
		pods     pods
		order    []int
	}{
		"no strategy keeps the order":       {pods: pods{{"a": "1"}, {"a": "3"}, {"a": "2"}}, order: []int{0, 1, 2}},
		"an empty strategy keeps the order": {strategy: byKeys(), pods: pods{{"a": "1"}, {"a": "3"}}, order: []int{0, 1}},

		"the highest weight first": {
			strategy: byWeights(weight(10, having("tier", "canary")), weight(50, having("tier", "edge"))),
			pods:     pods{{"tier": "core"}, {"tier": "canary"}, {"tier": "edge"}}, order: []int{2, 1, 0},
		},
		"weights add up": {
			strategy: byWeights(weight(30, having("tier", "edge")), weight(20, having("zone", "a")), weight(20, where("gpu", metav1.LabelSelectorOpDoesNotExist))),
			pods:     pods{{"tier": "edge", "gpu": "x"}, {"zone": "a"}, {"tier": "edge", "zone": "a"}, nil}, order: []int{2, 1, 0, 3},
		},
		"equal weights keep the order": {
			strategy: byWeights(weight(5, where("tier", metav1.LabelSelectorOpIn, "edge", "core"))),
			pods:     pods{{"tier": "none"}, {"tier": "core"}, {"tier": "edge"}, {"tier": "core"}}, order: []int{1, 2, 3, 0},
		},
		"a selector that cannot be read matches nothing": {
			strategy: byWeights(weight(100, where("tier", "Is", "edge")), weight(100, where("tier", metav1.LabelSelectorOpIn)),
				weight(100, having("-", "not a key")), weight(1, having("tier", "core"))),
			pods: pods{{"tier": "edge", "-": "not a key"}, {"tier": "core"}}, order: []int{1, 0},
		},

		"the highest number first, as a number": {
			strategy: byKeys("batch"), pods: pods{{"batch": "9"}, {"batch": "10"}, {"batch": "100"}, {"batch": "2"}}, order: []int{2, 1, 0, 3},
		},
		"only the number at the end counts": {
			strategy: byKeys("batch"), pods: pods{{"batch": "z-2"}, {"batch": "a3"}, {"batch": "7-1"}, {"batch": "v1.5"}}, order: []int{3, 1, 0, 2},
		},
		"no number counts as 0, no label as less": {
			strategy: byKeys("batch"), pods: pods{nil, {"batch": "x"}, {"batch": ""}, {"batch": "0"}, {"batch": "1x"}, {"batch": "1"}}, order: []int{5, 1, 2, 3, 4, 0},
		},
		"a number that is too large is the largest": {
			strategy: byKeys("batch"),
			pods:     pods{{"batch": "9223372036854775806"}, {"batch": "99999999999999999999999999"}}, order: []int{1, 0},
		},
		"those with the first label before those with the second": {
			strategy: byKeys("first", "second"),
			pods:     pods{{"second": "9"}, {"first": "1"}, nil, {"second": "10"}, {"first": "2", "second": "1"}}, order: []int{4, 1, 3, 0, 2},
		},
		"the second label where the first is equal": {
			strategy: byKeys("first", "second"),
			pods:     pods{{"first": "1"}, {"first": "1", "second": "3"}, {"first": "a1", "second": "20"}}, order: []int{2, 1, 0},
		},
		"a key that is none orders nothing": {strategy: byKeys("", "no key!"), pods: pods{{"a": "1"}, {"a": "2"}}, order: []int{0, 1}},
		"weights before orders, in an object that has both": {
			strategy: &appsv1beta1.UpdatePriorityStrategy{
				OrderPriority:  byKeys("batch").OrderPriority,
				WeightPriority: byWeights(weight(1, having("tier", "core"))).WeightPriority,
			},
			pods: pods{{"batch": "9"}, {"tier": "core"}, {"batch": "10"}}, order: []int{1, 0, 2},
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			priorityOf := Priorities(tc.strategy)
			order := make([]int, len(tc.pods))
			for i := range order {
				order[i] = i
			}
			slices.SortStableFunc(order, func(a, b int) int {
				return priorityOf(tc.pods[a]).Compare(priorityOf(tc.pods[b]))
			})
			g.Expect(order).To(Equal(tc.order))
		})
	}
}

func TestASelectorThatCannotBeReadAddsNothing(t *testing.T) {
	priorityOf := Priorities(byWeights(weight(100, where("tier", "Is", "edge")), weight(1, having("tier", "edge"))))
	NewWithT(t).Expect(priorityOf(labels.Set{"tier": "edge"})).To(Equal(Priority{1}))
}

func TestTrailingNumber(t *testing.T) {
	for value, want := range map[string]int64{
		"": 0, "x": 0, "0": 0, "007": 7, "a1b22": 22, "-5": 5, "1.5": 5, "20260102150405": 20260102150405,
	} {
		t.Run(fmt.Sprintf("%q", value), func(t *testing.T) {
			NewWithT(t).Expect(trailingNumber(value)).To(Equal(want))
		})
	}
}
