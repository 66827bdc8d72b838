// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Where the set is a DaemonSet, nodes are objects that the manager's cache shows. Here is what
// Kubernetes does about them: the scheduler, the controller of the lifecycle of nodes, which taints
// them and evicts pods, and the garbage collector of pods.

// addNode adds a node with a kubelet.
func (w *World) addNode() error {
	name := fmt.Sprintf("node-%d", len(w.nodes))
	node := newKubelet(w, name, w.settings.oldKubelets)
	node.cpu = w.settings.resizes.cpu
	if w.server.sizes.nodes != nil {
		w.server.sizes.nodes[name] = node.cpu
	}
	w.nodes = append(w.nodes, node)
	return w.register(node)
}

// register makes the object of a node. Nodes are in two zones.
func (w *World) register(node *kubelet) error {
	zone := []string{"a", "b"}[slices.Index(w.nodes, node)%2]
	return w.server.create(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node.node, Labels: map[string]string{nodeRole: workerRole, nodeZone: zone}},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
}

// bindDaemons lets the scheduler bind pods to the nodes that they ask for, sooner or later.
func (w *World) bindDaemons() {
	pods := all[*corev1.Pod](w.server)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		pod := pods[name]
		if pod.Spec.NodeName != "" || pod.DeletionTimestamp != nil || !w.calm && w.choices.oneIn(3) {
			continue
		}
		node, exists := get[*corev1.Node](w.server, targetOf(pod))
		if exists && hasLabels(pod.Spec.NodeSelector, node) && !isKeptAway(pod.Spec.Tolerations, node, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute) &&
			w.nodeNamed(node.Name).hasRoom(pod) {
			w.server.bind(pod, node.Name)
		}
		w.tellScheduled(name)
	}
}

// hasLabels reports whether a node has the labels of a node selector.
func hasLabels(selector map[string]string, node *corev1.Node) bool {
	for key, value := range selector {
		if node.Labels[key] != value {
			return false
		}
	}
	return true
}

// isKeptAway reports whether a taint of a node with one of the effects is not tolerated.
func isKeptAway(tolerations []corev1.Toleration, node *corev1.Node, effects ...corev1.TaintEffect) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return slices.Contains(effects, taint.Effect) && !slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
			return t.Key == taint.Key && t.Operator == corev1.TolerationOpExists && (t.Effect == "" || t.Effect == taint.Effect)
		})
	})
}

func (w *World) nodeNamed(name string) *kubelet {
	return w.nodes[slices.IndexFunc(w.nodes, func(k *kubelet) bool { return k.node == name })]
}

// ofKubernetes are the taints that the controller of the lifecycle of nodes takes care of.
var ofKubernetes = []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable}

// controlNodeObjects is one second of the controller of the lifecycle of nodes.
func (w *World) controlNodeObjects() {
	for _, node := range w.nodes {
		object, exists := get[*corev1.Node](w.server, node.node)
		if !exists {
			w.collectPodsOf(node)
			continue
		}
		status := node.readiness()
		mutate(w.server, node.node, func(n *corev1.Node) { setNodeCondition(n, corev1.NodeReady, status) })
		if w.calm || !w.choices.oneIn(3) { // it follows, sooner or later
			mutate(w.server, node.node, func(n *corev1.Node) { n.Spec.Taints = taintsOf(n, status) })
		}
		if isDown := status != corev1.ConditionTrue; isDown && nodeConditionIs(object, corev1.NodeReady) {
			w.markPodsUnready(node)
		}
		w.evictUntolerated(node)
	}
}

// readiness is what the Ready condition of the node is.
func (k *kubelet) readiness() corev1.ConditionStatus {
	switch {
	case k.isDead() && k.world.clock.Now().Sub(k.deadSince) >= unreadyAfter:
		return corev1.ConditionUnknown
	case k.unready:
		return corev1.ConditionFalse
	default:
		return corev1.ConditionTrue
	}
}

// taintsOf returns the taints that a node is to have: its own, and those of Kubernetes.
func taintsOf(node *corev1.Node, ready corev1.ConditionStatus) []corev1.Taint {
	taints := slices.DeleteFunc(slices.Clone(node.Spec.Taints), func(t corev1.Taint) bool { return slices.Contains(ofKubernetes, t.Key) })
	if node.Spec.Unschedulable {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	keys := map[corev1.ConditionStatus]string{corev1.ConditionFalse: corev1.TaintNodeNotReady, corev1.ConditionUnknown: corev1.TaintNodeUnreachable}
	if key := keys[ready]; key != "" {
		taints = append(taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule}, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return taints
}

func nodeConditionIs(node *corev1.Node, conditionType corev1.NodeConditionType) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == conditionType && c.Status == corev1.ConditionTrue
	})
}

func setNodeCondition(node *corev1.Node, conditionType corev1.NodeConditionType, status corev1.ConditionStatus) {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == conditionType {
			node.Status.Conditions[i].Status = status
			return
		}
	}
	node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: conditionType, Status: status})
}

// markPodsUnready says of the pods of a node that became unready that they are not ready.
func (w *World) markPodsUnready(node *kubelet) {
	for _, pod := range w.podsOn(node.node) {
		mutate(w.server, pod.Name, func(pod *corev1.Pod) { setPodCondition(pod, corev1.PodReady, false, w.clock.Now()) })
	}
}

// evictUntolerated deletes the pods of a node that do not tolerate that others are evicted.
func (w *World) evictUntolerated(node *kubelet) {
	object, _ := get[*corev1.Node](w.server, node.node)
	for _, pod := range w.podsOn(node.node) {
		if pod.DeletionTimestamp == nil && isKeptAway(pod.Spec.Tolerations, object, corev1.TaintEffectNoExecute) && (w.calm || w.choices.oneIn(4)) {
			w.say("a taint of %s evicts %s", node.node, pod.Name)
			_ = w.server.delete(objectKey{"Pod", pod.Name}, nil) // it is there: it was just seen
		}
	}
}

// collectAfter is how long pods of a node that is no more stay.
const collectAfter = 20 * time.Second

// collectPodsOf deletes the pods of a node that is no more, as the garbage collector of pods does.
func (w *World) collectPodsOf(node *kubelet) {
	if w.clock.Now().Sub(node.deadSince) < collectAfter {
		return
	}
	for _, pod := range w.podsOn(node.node) {
		w.say("%s, whose node is no more, is collected", pod.Name)
		w.server.finish(objectKey{"Pod", pod.Name})
	}
}

// podsOn returns the pods that run on a node, by name.
func (w *World) podsOn(node string) []*corev1.Pod {
	var found []*corev1.Pod
	pods := all[*corev1.Pod](w.server)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if pods[name].Spec.NodeName == node {
			found = append(found, pods[name])
		}
	}
	return found
}

// tellScheduled lets the scheduler say whether it has found the node of a pod.
func (w *World) tellScheduled(name string) {
	mutate(w.server, name, func(pod *corev1.Pod) {
		c := &corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now())}
		if pod.Spec.NodeName == "" {
			c.Status, c.Reason, c.Message = corev1.ConditionFalse, corev1.PodReasonUnschedulable, "no node is available"
		}
		putCondition(pod, corev1.PodScheduled, c)
	})
}
