// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// nodeNamed returns a node with labels that is ready.
func nodeNamed(name string, labels map[string]string, taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.NodeSpec{Taints: taints},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
}

func required(terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
	return &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms},
	}}
}

func TestSelection(t *testing.T) {
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	inZone := required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}},
	}})
	both, none, keeps := placement{runs: true, keeps: true}, placement{}, placement{keeps: true}
	for _, test := range []struct {
		name string
		spec corev1.PodSpec
		node *corev1.Node
		want placement
	}{
		{"any node", corev1.PodSpec{}, nodeNamed("a", nil), both},
		{"the named node", corev1.PodSpec{NodeName: "a"}, nodeNamed("a", nil), both},
		{"another one", corev1.PodSpec{NodeName: "a"}, nodeNamed("b", nil), none},
		{"selected by a label", corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}, nodeNamed("a", map[string]string{"disk": "fast"}), both},
		{"selected by another label", corev1.PodSpec{NodeSelector: map[string]string{"disk": "fast"}}, nodeNamed("a", nil), none},
		{"required by affinity", corev1.PodSpec{Affinity: inZone}, nodeNamed("a", map[string]string{"zone": "a"}), both},
		{"not the one that affinity requires", corev1.PodSpec{Affinity: inZone}, nodeNamed("a", map[string]string{"zone": "b"}), none},
		{
			"an affinity that cannot be read selects no node",
			corev1.PodSpec{Affinity: required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "Near"}}})},
			nodeNamed("a", nil), none,
		},
		{"a taint keeps new pods away", corev1.PodSpec{}, nodeNamed("a", nil, taint("gpu", corev1.TaintEffectNoSchedule)), keeps},
		{"a taint drives pods away", corev1.PodSpec{}, nodeNamed("a", nil, taint("gpu", corev1.TaintEffectNoExecute)), none},
		{"a taint that asks only", corev1.PodSpec{}, nodeNamed("a", nil, taint("gpu", corev1.TaintEffectPreferNoSchedule)), both},
		{
			"a taint that the template tolerates",
			corev1.PodSpec{Tolerations: []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}},
			nodeNamed("a", nil, taint("gpu", corev1.TaintEffectNoExecute)), both,
		},
		{
			"cordoned, out of memory and not ready",
			corev1.PodSpec{},
			nodeNamed("a", nil, taint(corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule), taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule),
				taint(corev1.TaintNodeNotReady, corev1.TaintEffectNoExecute)), both,
		},
		{"without its network", corev1.PodSpec{}, nodeNamed("a", nil, taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)), keeps},
		{
			"without the network that it does not use", corev1.PodSpec{HostNetwork: true},
			nodeNamed("a", nil, taint(corev1.TaintNodeNetworkUnavailable, corev1.TaintEffectNoSchedule)), both,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			NewWithT(t).Expect(selectionOf(&test.spec).of(test.node)).To(Equal(test.want))
		})
	}
}

// A pod that is made for a node has the tolerations, names the node, and keeps what else its
// template says of affinity. The template stays as it is.
func TestAim(t *testing.T) {
	g := NewWithT(t)
	own := corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}
	replaced := corev1.Toleration{
		Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64),
	}
	spec := corev1.PodSpec{
		Tolerations: []corev1.Toleration{own, replaced},
		Affinity:    required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}),
	}
	spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{}
	pod := &corev1.Pod{Spec: *spec.DeepCopy()}

	aim(&pod.Spec, "node-7")

	g.Expect(targetOf(pod)).To(Equal("node-7"))
	g.Expect(pod.Spec.Affinity.PodAntiAffinity).NotTo(BeNil())
	g.Expect(pod.Spec.Tolerations).To(HaveLen(7))
	g.Expect(pod.Spec.Tolerations).To(ContainElement(own))
	g.Expect(pod.Spec.Tolerations).NotTo(ContainElement(replaced), "it would let the pod be evicted from a node that is not ready")
	g.Expect(spec.Tolerations).To(HaveLen(2))
	g.Expect(daemonTolerations).To(HaveLen(6))

	pod.Spec.NodeName = "node-8"
	g.Expect(targetOf(pod)).To(Equal("node-8"), "where it runs")
	g.Expect(targetOf(&corev1.Pod{})).To(BeEmpty())
}

func TestWhyNotNow(t *testing.T) {
	g := NewWithT(t)
	node := nodeNamed("a", nil)
	g.Expect(whyNotNow(node)).To(BeEmpty())
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue})
	g.Expect(whyNotNow(node)).To(BeEmpty(), "it runs its pods")
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMaintenancePlanned, Status: corev1.ConditionTrue})
	g.Expect(whyNotNow(node)).To(BeEmpty(), "it has not begun")
	for _, kind := range []corev1.NodeConditionType{
		corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress, corev1.NodeGracefulNodeShutdownInProgress,
	} {
		other := node.DeepCopy()
		other.Status.Conditions = append(other.Status.Conditions, corev1.NodeCondition{Type: kind, Status: corev1.ConditionTrue})
		g.Expect(whyNotNow(other)).To(ContainSubstring(string(kind)))
	}
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	g.Expect(whyNotNow(node)).To(Equal("node a is not ready"))
}
