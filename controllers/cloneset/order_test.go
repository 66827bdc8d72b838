// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// memberNamed returns a ready pod on a node.
func memberNamed(name string, changes ...func(*member)) *member {
	pod := builders.Pod(name, "old", "nginx:alpine").With(func(pod *corev1.Pod) { pod.Spec.NodeName = "node-1" }).Build()
	m := &member{Pod: pod, serves: true, available: true}
	for _, change := range changes {
		change(m)
	}
	return m
}

func labeled(key, value string) func(*member) {
	return func(m *member) { m.Labels[key] = value }
}

func isUnready(m *member) {
	m.serves, m.available = false, false
	m.Status.Conditions = builders.Pod("", "", "").Ready(false, builders.Start).Build().Status.Conditions
}

func isPending(m *member) {
	isUnready(m)
	m.Status.Phase = corev1.PodPending
}

func isUnscheduled(m *member) {
	isPending(m)
	m.Spec.NodeName = ""
}

func namesOf(members []*member) []string {
	names := []string{}
	for _, m := range members {
		names = append(names, m.Name)
	}
	return names
}

func TestInUpdateOrder(t *testing.T) {
	byTier := &appsv1beta1.UpdatePriorityStrategy{WeightPriority: []appsv1beta1.UpdatePriorityWeightTerm{
		{Weight: 50, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": "edge"}}},
	}}
	spread := []appsv1beta1.CloneSetUpdateScatterTerm{{Key: "zone", Value: "a"}}
	for name, tc := range map[string]struct {
		pods     []*member
		strategy *appsv1beta1.UpdatePriorityStrategy
		terms    []appsv1beta1.CloneSetUpdateScatterTerm
		want     []string
	}{
		"by name": {pods: []*member{memberNamed("c"), memberNamed("a"), memberNamed("b")}, want: []string{"a", "b", "c"}},
		"what does not serve first": {
			pods: []*member{memberNamed("a"), memberNamed("b", isUnready), memberNamed("c", isPending), memberNamed("d", isUnscheduled)},
			want: []string{"d", "c", "b", "a"},
		},
		"then by priority": {
			pods:     []*member{memberNamed("a"), memberNamed("b", labeled("tier", "edge")), memberNamed("c", isUnready)},
			strategy: byTier, want: []string{"c", "b", "a"},
		},
		"then scattered": {
			pods: []*member{
				memberNamed("a", labeled("zone", "a")), memberNamed("b", labeled("zone", "a")), memberNamed("c"), memberNamed("d"), memberNamed("e"), memberNamed("f"),
			},
			terms: spread, want: []string{"a", "c", "d", "b", "e", "f"},
		},
		"scattered among those of one priority": {
			pods: []*member{
				memberNamed("a", labeled("zone", "a")), memberNamed("b", labeled("zone", "a")), memberNamed("c"), memberNamed("d"), memberNamed("e", labeled("tier", "edge")),
			},
			strategy: byTier, terms: spread, want: []string{"e", "a", "c", "b", "d"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(namesOf(inUpdateOrder(tc.pods, tc.strategy, tc.terms))).To(Equal(tc.want))
		})
	}
}

// However many there are: between two named ones there are as many others as
// between any other two, but for one, and the order is kept otherwise.
func TestScatterIsEven(t *testing.T) {
	for n := range 13 {
		for m := range n + 1 {
			items := make([]int, n)
			named := make([]bool, n)
			for i := range items {
				items[i], named[i] = i, i < m
			}
			scatter(items, named)
			g := NewWithT(t)
			var at, others, spread []int
			for i, item := range items {
				if item < m {
					at, spread = append(at, i), append(spread, item)
				} else {
					others = append(others, item)
				}
			}
			g.Expect(slices.IsSorted(spread) && slices.IsSorted(others)).To(BeTrue(), "%d of %d: %v", m, n, items)
			for i := 1; i < len(at); i++ {
				g.Expect(at[i]-at[i-1]).To(BeElementOf(n/m, (n+m-1)/m), "%d of %d: %v", m, n, items)
			}
		}
	}
}
