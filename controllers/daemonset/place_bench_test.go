// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// BenchmarkNodes is what a round decides about nodes: which run a pod, where pods are missing or
// too many, and whose turn it is.
func BenchmarkNodes(b *testing.B) {
	for _, count := range []int{1000, 5000} {
		b.Run(fmt.Sprintf("nodes=%d", count), func(b *testing.B) {
			nodes := make([]corev1.Node, count)
			s := &scope{set: &appsv1beta1.DaemonSet{}, selector: labels.Everything()}
			s.set.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/os": "linux"}
			for i := range nodes {
				name := fmt.Sprintf("node-%04d", i)
				nodes[i] = corev1.Node{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux", "kubernetes.io/hostname": name}},
					Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}},
				}
				s.Pods = append(s.Pods, podOn(name, "pod-"+name, "old", i%60))
			}
			b.ReportAllocs()
			for b.Loop() {
				s.desired = 0
				s.locate(nodes)
				s.placed = planNodes(placeFacts{nodes: s.nodes, mark: "new", burst: 250, mayCreate: -1, now: now})
				s.takeTurns("new")
			}
		})
	}
}
