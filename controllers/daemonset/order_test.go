// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestInUpdateOrder(t *testing.T) {
	canary, other := map[string]string{"canary": "yes"}, map[string]string{}
	isCanary := labels.SelectorFromSet(canary)
	old := func(node string, labels map[string]string) turn {
		return turn{node: node, labels: labels, pod: podOn(node, "pod-"+node, "old", 9)}
	}
	updated := func(node string, labels map[string]string) turn {
		return turn{node: node, labels: labels, pod: podOn(node, "pod-"+node, "new", 9)}
	}
	surging := old("a", other)
	surging.surges = true
	for _, test := range []struct {
		name      string
		turns     []turn
		selector  labels.Selector
		partition int
		want      []string
	}{
		{name: "all, the highest names first", turns: []turn{old("a", other), old("c", other), old("b", other)}, want: []string{"c", "b", "a"}},
		{name: "a partition", turns: []turn{old("a", other), old("b", other), old("c", other)}, partition: 1, want: []string{"c", "b"}},
		{name: "all kept", turns: []turn{old("a", other), old("b", other)}, partition: 2},
		{name: "a partition larger than the set", turns: []turn{old("a", other)}, partition: 5},
		{
			name: "updated ones count, whatever their names are", turns: []turn{updated("a", other), old("b", other), old("c", other)}, partition: 1,
			want: []string{"a", "c"},
		},
		{
			name: "a surge that has begun counts, whatever its node's name is", turns: []turn{surging, old("b", other), old("c", other)}, partition: 2,
			want: []string{"a"},
		},
		{name: "nodes without a pod count before old ones", turns: []turn{{node: "a", labels: other}, old("b", other), old("c", other)}, partition: 1, want: []string{"a", "c"}},
		{
			name: "one that is being deleted", turns: []turn{{node: "a", labels: other, pod: changed(podOn("a", "pod-a", "old", 9), leaving)}, old("b", other)},
			partition: 1, want: []string{"a"},
		},
		{name: "selected nodes", turns: []turn{old("a", canary), old("b", other), old("c", other)}, selector: isCanary, want: []string{"a"}},
		{
			name: "selected nodes, and one that was", turns: []turn{old("a", canary), updated("b", other), old("c", other)}, selector: isCanary,
			want: []string{"b", "a"},
		},
		{
			name: "selected nodes within a partition", turns: []turn{old("a", canary), old("b", canary), old("c", other)}, selector: isCanary, partition: 2,
			want: []string{"b"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.selector == nil {
				test.selector = labels.Everything()
			}
			ordered, released := inUpdateOrder(test.turns, "new", test.selector, test.partition)
			var nodes []string
			for _, turn := range ordered[:released] {
				nodes = append(nodes, turn.node)
			}
			NewWithT(t).Expect(nodes).To(Equal(test.want))
		})
	}
}

// Pods whose revision is gone stay where the partition keeps them, too, also in a set of which the
// status names no current revision.
func TestPartitionOfPodsOfAnUnknownRevision(t *testing.T) {
	for name, test := range map[string]struct {
		isInferred bool
		released   int
	}{
		"the status names no current revision": {true, 1},
		"the user has gone back to it":         {false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{set: &appsv1beta1.DaemonSet{}, selector: labels.Everything(), isInferred: test.isInferred}
			s.set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSetStrategy{Partition: ptr.To(intstr.FromInt32(2))}
			var nodes []corev1.Node
			for _, node := range []string{"node-1", "node-2", "node-3"} {
				nodes = append(nodes, *nodeNamed(node, nil))
				s.Pods = append(s.Pods, podOn(node, "pod-"+node, "gone", 9))
			}
			s.locate(nodes)
			s.placed = planNodes(placeFacts{nodes: s.nodes, mark: "new", burst: 250, mayCreate: -1, now: now})
			s.takeTurns("new")
			NewWithT(t).Expect(s.released).To(Equal(test.released))
		})
	}
}
