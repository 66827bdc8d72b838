// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// A surge runs a second pod on as many nodes as maxSurge allows. A pod that does not serve takes
// none of these places, one that has just begun to serve does.
func TestSurgeNodes(t *testing.T) {
	for name, test := range map[string]struct {
		pods []*corev1.Pod
		want []string
	}{
		"one node at a time": {[]*corev1.Pod{podOn("a", "x", "old", 60), podOn("b", "y", "old", 60)}, []string{"b"}},
		"a pod that does not serve, besides": {
			[]*corev1.Pod{changed(podOn("a", "x", "old", 60), unready), podOn("b", "y", "old", 60)}, []string{"b", "a"},
		},
		"pods of an update within minReadySeconds": {[]*corev1.Pod{podOn("a", "x", "old", 2), podOn("b", "y", "old", 2)}, []string{"b"}},
		"a node has two already":                   {[]*corev1.Pod{podOn("a", "x", "old", 60), podOn("b", "y", "old", 60), podOn("b", "z", "new", 1)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{set: &appsv1beta1.DaemonSet{}, selector: labels.Everything()}
			s.set.Spec.MinReadySeconds, s.Now = 30, now
			s.Pods = test.pods
			s.locate([]corev1.Node{*nodeNamed("a", nil), *nodeNamed("b", nil)})
			facts := placeFacts{nodes: s.nodes, mark: "new", burst: 250, mayCreate: -1, now: now, surges: 1, minReadySeconds: 30}
			s.placed = planNodes(facts)
			s.takeTurns("new")
			NewWithT(t).Expect(s.surgeNodes("new", 1)).To(Equal(test.want))
		})
	}
}

// The scheduler would not bind a second pod to a node whose taint keeps new pods away: the surge
// makes none there.
func TestSurgeMakesNoPodOnATaintedNode(t *testing.T) {
	s := &scope{set: &appsv1beta1.DaemonSet{}, selector: labels.Everything()}
	s.Now = now
	s.Pods = []*corev1.Pod{podOn("a", "x", "old", 60), podOn("b", "y", "old", 60), changed(podOn("c", "z", "old", 60), unready)}
	taint := corev1.Taint{Key: "gpu", Effect: corev1.TaintEffectNoSchedule}
	s.locate([]corev1.Node{*nodeNamed("a", nil), *nodeNamed("b", nil, taint), *nodeNamed("c", nil, taint)})
	s.placed = planNodes(placeFacts{nodes: s.nodes, mark: "new", burst: 250, mayCreate: -1, now: now, surges: 3})
	s.takeTurns("new")
	NewWithT(t).Expect(s.surgeNodes("new", 3)).To(Equal([]string{"a"}))
}
