// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

var now = time.Date(2026, time.January, 2, 12, 0, 0, 0, time.UTC)

// podOn returns a pod that is ready on a node, at a revision. It was made so many seconds ago.
func podOn(node, name, revision string, age int) *corev1.Pod {
	made := metav1.NewTime(now.Add(-time.Duration(age) * time.Second))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: made, Labels: map[string]string{appsv1beta1.ControllerRevisionHashLabel: revision}},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: made},
	}}
	return pod
}

func changed(pod *corev1.Pod, changes ...func(*corev1.Pod)) *corev1.Pod {
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func unready(pod *corev1.Pod)   { pod.Status.Conditions[0].Status = corev1.ConditionFalse }
func leaving(pod *corev1.Pod)   { pod.DeletionTimestamp = &metav1.Time{Time: now} }
func hasFailed(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }
func isHeld(pod *corev1.Pod) {
	pod.Labels[appsv1beta1.LifecycleStateKey] = string(appsv1beta1.LifecycleStatePreparingDelete)
}
func isNew(pod *corev1.Pod) {
	pod.Labels[appsv1beta1.LifecycleStateKey] = string(appsv1beta1.LifecycleStatePreparingNormal)
}
func hasEnded(pod *corev1.Pod) { pod.Status.Phase = corev1.PodSucceeded }
func unbound(pod *corev1.Pod) {
	node := pod.Spec.NodeName
	pod.Spec.NodeName = ""
	aim(&pod.Spec, node)
}

func names(pods []*corev1.Pod) []string {
	found := make([]string, len(pods))
	for i, pod := range pods {
		found[i] = pod.Name
	}
	return found
}

func TestPlanNodes(t *testing.T) {
	both, keeps := placement{runs: true, keeps: true}, placement{keeps: true}
	on := func(p placement, pods ...*corev1.Pod) nodeFacts {
		return nodeFacts{name: "a", placement: p, pods: pods}
	}
	for _, test := range []struct {
		name  string
		node  nodeFacts
		facts func(*placeFacts)
		// what is planned
		create                        []string
		remove, stays, ended, awaited []string
	}{
		{name: "no pod", node: on(both), create: []string{"a"}},
		{name: "one pod", node: on(both, podOn("a", "x", "new", 9)), stays: []string{"x"}},
		{name: "one that is being deleted", node: on(both, changed(podOn("a", "x", "new", 9), leaving))},
		{name: "a node for no new pods", node: on(keeps)},
		{name: "a node for no new pods, with one", node: on(keeps, podOn("a", "x", "new", 9)), stays: []string{"x"}},
		{name: "a node for no new pods, with one that is not bound yet", node: on(keeps, changed(podOn("a", "x", "new", 9), unbound)), remove: []string{"x"}},
		{name: "a node that is not selected", node: on(placement{}, podOn("a", "x", "new", 9), changed(podOn("a", "y", "new", 8), leaving)), remove: []string{"x"}},
		{
			name: "a node that is gone", node: nodeFacts{name: "a", gone: true, pods: []*corev1.Pod{podOn("a", "x", "new", 9), changed(podOn("a", "y", "new", 8), unbound)}},
			remove: []string{"y"},
		},
		{name: "one that failed", node: on(both, changed(podOn("a", "x", "new", 9), hasFailed)), remove: []string{"x"}, ended: []string{"x"}},
		{
			name: "one that failed again", node: on(both, changed(podOn("a", "x", "new", 9), hasFailed)),
			facts: func(f *placeFacts) { f.mayReplace = func(string) bool { return false } },
		},
		{
			name: "one that failed, which a hook holds already", node: on(both, changed(podOn("a", "x", "new", 9), hasFailed, isHeld)),
			facts: func(f *placeFacts) { f.mayReplace = func(string) bool { return false } }, remove: []string{"x"},
		},
		{name: "one that has ended well", node: on(both, changed(podOn("a", "x", "new", 9), hasEnded)), remove: []string{"x"}, ended: []string{"x"}},
		{name: "two", node: on(both, podOn("a", "y", "new", 8), podOn("a", "x", "old", 9)), remove: []string{"y"}, stays: []string{"x"}},
		{
			name: "two, of which the older one has no node yet", node: on(both, changed(podOn("a", "x", "old", 9), unbound), podOn("a", "y", "new", 8)),
			remove: []string{"x"}, stays: []string{"y"},
		},
		{
			name: "one that failed, and another one", node: on(both, changed(podOn("a", "x", "new", 9), hasFailed), podOn("a", "y", "new", 8)),
			remove: []string{"x"}, ended: []string{"x"}, stays: []string{"y"},
		},
		{
			name: "a surge, the new one comes", node: on(both, podOn("a", "x", "old", 9), changed(podOn("a", "y", "new", 8), unready)), facts: surging,
			stays: []string{"x"}, awaited: []string{"y"},
		},
		{
			name: "a surge, the new one is not ready for long enough", node: on(both, podOn("a", "x", "old", 9), podOn("a", "y", "new", 4)), facts: surging,
			stays: []string{"x"}, awaited: []string{"y"},
		},
		{
			name: "a surge, the new one is held by a hook", node: on(both, podOn("a", "x", "old", 9), changed(podOn("a", "y", "new", 6), isNew)),
			facts: func(f *placeFacts) {
				surging(f)
				f.lifecycle = &appsv1beta1.Lifecycle{PreNormal: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{"in-use": "true"}}}
			},
			stays: []string{"x"}, awaited: []string{"y"},
		},
		{
			name: "a surge, the new one is there", node: on(both, podOn("a", "x", "old", 9), podOn("a", "y", "new", 6)), facts: surging,
			remove: []string{"x"}, stays: []string{"y"},
		},
		{
			name: "a surge, the old one does not serve", node: on(both, changed(podOn("a", "x", "old", 9), unready), changed(podOn("a", "y", "new", 8), unready)), facts: surging,
			remove: []string{"x"}, stays: []string{"y"},
		},
		{
			name: "a surge, overtaken", node: on(both, podOn("a", "x", "oldest", 9), podOn("a", "y", "old", 8), podOn("a", "z", "new", 1)), facts: surging,
			remove: []string{"y"}, stays: []string{"x"}, awaited: []string{"z"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			facts := placeFacts{
				nodes: []nodeFacts{test.node}, mark: "new", burst: 250, mayCreate: -1, now: now, mayReplace: func(string) bool { return true },
			}
			if test.facts != nil {
				test.facts(&facts)
			}
			plan := planNodes(facts)
			g.Expect(plan.create).To(ConsistOf(test.create))
			g.Expect(names(plan.remove)).To(ConsistOf(test.remove))
			g.Expect(names(plan.failed)).To(ConsistOf(test.ended))
			g.Expect(names(plan.staying)).To(ConsistOf(test.stays))
			g.Expect(names(plan.awaited)).To(ConsistOf(test.awaited))
			g.Expect(plan.vacant).To(BeEmpty())
		})
	}
}

func surging(f *placeFacts) { f.surges, f.minReadySeconds = 1, 5 }

// At most burst pods are made, and at most burst go; what else limits creations leaves the nodes
// with the highest names without a pod.
func TestPlanNodesByLimits(t *testing.T) {
	g := NewWithT(t)
	facts := placeFacts{burst: 3, mayCreate: -1, now: now, mayReplace: func(string) bool { return true }}
	for i := range 10 {
		name := fmt.Sprintf("node-%d", i)
		facts.nodes = append(facts.nodes, nodeFacts{name: name, placement: placement{runs: true, keeps: true}})
		facts.nodes = append(facts.nodes, nodeFacts{name: name + "-other", pods: []*corev1.Pod{podOn(name, "pod-"+name, "old", 1)}})
	}
	plan := planNodes(facts)
	g.Expect(plan.create).To(Equal([]string{"node-0", "node-1", "node-2"}))
	g.Expect(plan.remove).To(HaveLen(3))
	g.Expect(plan.vacant).To(BeEmpty(), "the others get theirs next")

	facts.burst, facts.mayCreate = 250, 1
	plan = planNodes(facts)
	g.Expect(plan.create).To(Equal([]string{"node-0"}))
	g.Expect(plan.vacant).To(HaveLen(9))
	facts.mayCreate = 0
	plan = planNodes(facts)
	g.Expect(plan.create).To(BeEmpty())
	g.Expect(plan.vacant).To(HaveLen(10))
}
