// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package podcache

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestTrimNodeKeepsWhatIsReadAndNothingElse(t *testing.T) {
	g := NewWithT(t)
	whole := &corev1.Node{}
	fill(whole)
	trimmed, err := TrimNode(whole.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	node := trimmed.(*corev1.Node) //nolint:forcetypeassert // it is one
	g.Expect(fields(t, node.ObjectMeta)).To(Equal([]string{"deletionTimestamp", "labels", "name", "resourceVersion", "uid"}))
	g.Expect(fields(t, node.Spec)).To(Equal([]string{"taints"}))
	g.Expect(fields(t, node.Status)).To(ContainElement("conditions"))
	g.Expect(node.Status.Images).To(BeEmpty())
	g.Expect(node.Status.Conditions).To(HaveLen(1))
	g.Expect(node.Status.Conditions[0]).To(Equal(corev1.NodeCondition{Type: whole.Status.Conditions[0].Type, Status: whole.Status.Conditions[0].Status}))
	again, err := TrimNode(node.DeepCopy())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(trimmed), "trimming twice is trimming once")
	g.Expect(TrimNode("a tombstone")).To(Equal("a tombstone"))
}

// Of the affinity of a pod without a node, the node that it was made for stays.
func TestTrimPodKeepsTheNodeThatItWasMadeFor(t *testing.T) {
	g := NewWithT(t)
	made := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}}}
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	trimmed := func(node string, terms ...corev1.NodeSelectorTerm) *corev1.Affinity {
		pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: node, Affinity: &corev1.Affinity{
			PodAffinity:  &corev1.PodAffinity{},
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: terms}},
		}}}
		_, err := trimPod(pod)
		g.Expect(err).NotTo(HaveOccurred())
		return pod.Spec.Affinity
	}
	g.Expect(trimmed("", made).NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms).To(ConsistOf(made))
	g.Expect(trimmed("", made).PodAffinity).To(BeNil())
	g.Expect(trimmed("", zone)).To(BeNil())
	g.Expect(trimmed("node-1", made)).To(BeNil(), "the node that it runs on says it")
}

// BenchmarkTrimNode reports the memory that one node takes in the cache, whole and trimmed.
func BenchmarkTrimNode(b *testing.B) {
	for name, trim := range map[string]cache.TransformFunc{
		"whole": func(in any) (any, error) { return in, nil }, "trimmed": TrimNode,
	} {
		b.Run(name, func(b *testing.B) { measureTrim(b, ordinaryNode(), trim, "bytes/node") })
	}
}

// ordinaryNode returns a node as a kubelet with fifty images reports it.
func ordinaryNode() *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "ip-10-0-12-34.eu-central-1.compute.internal", UID: "9f0c2d6e-7a54-4c0b-8d1f-0a6b8a1f2f10", ResourceVersion: "123456789",
		Labels: map[string]string{
			"kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": "ip-10-0-12-34.eu-central-1.compute.internal",
			"node.kubernetes.io/instance-type": "m7i.2xlarge", "topology.kubernetes.io/region": "eu-central-1", "topology.kubernetes.io/zone": "eu-central-1a",
		},
		Annotations: map[string]string{"volumes.kubernetes.io/controller-managed-attach-detach": "true", "node.alpha.kubernetes.io/ttl": "0"},
	}}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientResources", Message: "kubelet has sufficient resources available",
		})
	}
	for i := range 50 {
		node.Status.Images = append(node.Status.Images, corev1.ContainerImage{
			Names: []string{
				fmt.Sprintf("registry.example.com/shop/service-%d@sha256:%064d", i, i), fmt.Sprintf("registry.example.com/shop/service-%d:v1.2.3", i),
			},
			SizeBytes: 123456789,
		})
	}
	return node
}
