// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodes returns the nodes of the cluster by name.
func (w *world) nodes() map[string]*corev1.Node {
	GinkgoHelper()
	list := &corev1.NodeList{}
	Expect(w.live.List(w.ctx, list)).To(Succeed())
	nodes := map[string]*corev1.Node{}
	for i := range list.Items {
		nodes[list.Items[i].Name] = &list.Items[i]
	}
	return nodes
}

// addNode adds a node that is ready. Each node is to the API server one that is not ready yet
// when it is made, and is kept free of pods by a taint until then.
func (w *world) addNode(name string, labels map[string]string) {
	GinkgoHelper()
	Expect(w.api.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})).To(Succeed())
	w.changeNode(name, func(node *corev1.Node) { node.Spec.Taints = nil })
	w.changeNodeReady(name, corev1.ConditionTrue)
}

func (w *world) removeNode(name string) {
	GinkgoHelper()
	Expect(w.api.Delete(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
}

// changeNode changes labels or taints of a node.
func (w *world) changeNode(name string, change func(*corev1.Node)) {
	GinkgoHelper()
	node := w.nodes()[name]
	before := node.DeepCopy()
	change(node)
	Expect(w.api.Patch(w.ctx, node, client.MergeFrom(before))).To(Succeed())
}

// label gives a node a label.
func (w *world) label(name, key, value string) {
	GinkgoHelper()
	w.changeNode(name, func(node *corev1.Node) { metav1.SetMetaDataLabel(&node.ObjectMeta, key, value) })
}

// taint gives a node a taint, and no other.
func (w *world) taint(name, key string, effect corev1.TaintEffect) {
	GinkgoHelper()
	w.changeNode(name, func(node *corev1.Node) { node.Spec.Taints = []corev1.Taint{{Key: key, Effect: effect}} })
}

// changeNodeReady sets whether a node is ready, as its kubelet does.
func (w *world) changeNodeReady(name string, status corev1.ConditionStatus) {
	GinkgoHelper()
	node := w.nodes()[name]
	before := node.DeepCopy()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
	Expect(w.api.Status().Patch(w.ctx, node, client.MergeFrom(before))).To(Succeed())
}
