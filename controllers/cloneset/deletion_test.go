// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/test/builders"
)

func isUpdated(m *member)     { m.turn = workload.Updated }
func isOld(m *member)         { m.turn = workload.Resting }
func isAsked(m *member)       { m.asked = true }
func isPreparing(m *member)   { m.preparing = true }
func isUnavailable(m *member) { m.available = false }

func costs(value string) func(*member) {
	return func(m *member) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, corev1.PodDeletionCost, value) }
}

func onNode(name string) func(*member) {
	return func(m *member) { m.Spec.NodeName = name }
}

func readyAt(minutes int) func(*member) {
	return func(m *member) {
		m.Status.Conditions = builders.Pod("", "", "").Ready(true, builders.Start.Add(time.Duration(minutes)*time.Minute)).Build().Status.Conditions
	}
}

func createdAt(minutes int) func(*member) {
	return func(m *member) {
		m.CreationTimestamp = metav1.NewTime(builders.Start.Add(time.Duration(minutes) * time.Minute))
	}
}

func restarted(times int32) func(*member) {
	return func(m *member) { m.Status.ContainerStatuses[0].RestartCount = times }
}

func TestDeletionOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		partition int
		paused    bool
		pods      []*member
		want      []string
	}{
		"by name in the end": {pods: []*member{memberNamed("b"), memberNamed("a")}, want: []string{"a", "b"}},
		"preparing, asked, then the others": {
			pods: []*member{memberNamed("a", isUnscheduled), memberNamed("b", isAsked), memberNamed("c", isPreparing)},
			want: []string{"c", "b", "a"},
		},
		"by what they do": {
			pods: []*member{
				memberNamed("a", costs("-5")), memberNamed("b", isUnavailable), memberNamed("c", isUnready),
				memberNamed("d", isPending), memberNamed("e", isUnscheduled), memberNamed("f", costs("5")), memberNamed("g", costs("x")),
			},
			want: []string{"e", "d", "c", "b", "a", "g", "f"},
		},
		"full nodes get down to the others": {
			pods: []*member{
				memberNamed("a", onNode("one")), memberNamed("b", onNode("two")), memberNamed("c", onNode("two")),
				memberNamed("d", onNode("three")), memberNamed("e", onNode("three")), memberNamed("f", onNode("three")),
			},
			want: []string{"d", "b", "e", "a", "c", "f"},
		},
		"the newest ready, the most restarts, the newest": {
			pods: []*member{
				memberNamed("a", onNode("a")), memberNamed("b", onNode("b"), createdAt(1)), memberNamed("c", onNode("c"), restarted(1)),
				memberNamed("d", onNode("d"), readyAt(1)), memberNamed("e", onNode("e"), readyAt(2)),
			},
			want: []string{"e", "d", "c", "b", "a"},
		},
		"old ones make room, but for those that the partition keeps": {
			partition: 1,
			pods: []*member{
				memberNamed("a", isOld, costs("1")), memberNamed("b", isOld), memberNamed("c", isUpdated, isUnready), memberNamed("d", isUpdated), memberNamed("e", isOld),
			},
			want: []string{"b", "e", "c", "d", "a"},
		},
		"when the update is paused, what is worth least goes": {
			paused: true, partition: 1,
			pods: []*member{
				memberNamed("a", isOld, costs("1")), memberNamed("b", isOld), memberNamed("c", isUpdated, isUnready), memberNamed("d", isUpdated, costs("2")),
			},
			want: []string{"c", "b", "d", "a"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := scaleFacts{members: tc.pods, partition: tc.partition, stopped: true, paused: tc.paused}
			NewWithT(t).Expect(namesOf(f.inDeletionOrder())).To(Equal(tc.want))
		})
	}
}
