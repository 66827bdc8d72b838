// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// daemonDisturbances are what happens to DaemonSets. The first does nothing.
var daemonDisturbances = slices.Concat(
	slices.DeleteFunc(slices.Clone(disturbances), func(d disturbance) bool { return slices.Contains(unlessDaemons, d.name) }),
	[]disturbance{
		{"partition of nodes", (*World).changePartitionOfNodes, 3},
		{"selector of nodes", (*World).changeSelectorOfNodes, 3},
		{"surge of nodes", (*World).changeSurgeOfNodes, 2},
		{"burst", (*World).changeBurst, 1},
		{"partitioned scaling", (*World).togglePartitionedScaling, 1},
		{"node added", (*World).joinNode, 2},
		{"node deleted", (*World).deleteNode, 2},
		{"node registered again", (*World).registerNode, 2},
		{"cordon", (*World).toggleCordon, 2},
		{"taint", (*World).toggleTaint, 3},
		{"role of a node", (*World).changeRole, 3},
		{"zone of a node", (*World).changeZone, 1},
		{"node unready", (*World).toggleUnready, 2},
		{"maintenance", (*World).toggleMaintenance, 3},
	},
)

// unlessDaemons are the disturbances that are not for DaemonSets.
var unlessDaemons = []string{"partition", "scale", "podsToDelete", "surge"}

func (w *World) changePartitionOfNodes() {
	partition := w.choices.intN(len(w.nodes) + 1)
	w.say("user: partition %d", partition)
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To(int32(partition)) }) //nolint:gosec // small
}

// changeSelectorOfNodes limits the update to the nodes of a zone, or to none.
func (w *World) changeSelectorOfNodes() {
	zone := pick(w.choices, []string{"", "a", "b"})
	w.say("user: updates the nodes of zone %q", zone)
	w.changeDaemons(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Selector = inZone(zone) })
}

// inZone selects the nodes of a zone; all for none.
func inZone(zone string) *metav1.LabelSelector {
	if zone == "" {
		return nil
	}
	return &metav1.LabelSelector{MatchLabels: map[string]string{nodeZone: zone}}
}

// changeSurgeOfNodes changes how many nodes may run two pods: they are recreated then.
func (w *World) changeSurgeOfNodes() {
	surge := w.choices.intN(3)
	w.say("user: recreates with maxSurge %d", surge)
	w.changeDaemons(func(set *appsv1beta1.DaemonSet) {
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		rolling.RollingUpdateType, rolling.MaxSurge = appsv1beta1.StandardDaemonSetRollingUpdateType, ptr.To(intstr.FromInt(surge))
		if surge > 0 {
			rolling.MaxUnavailable = nil
		}
	})
}

func (w *World) changeBurst() {
	burst := 1 + w.choices.intN(4)
	w.say("user: burstReplicas %d", burst)
	w.changeDaemons(func(set *appsv1beta1.DaemonSet) { set.Spec.BurstReplicas = ptr.To(intstr.FromInt(burst)) })
}

func (w *World) togglePartitionedScaling() {
	w.changeDaemons(func(set *appsv1beta1.DaemonSet) {
		set.Spec.ScaleStrategy = &appsv1beta1.DaemonSetScaleStrategy{PartitionedScaling: !set.Spec.ScaleStrategy.PartitionedScaling}
		w.say("user: partitionedScaling %t", set.Spec.ScaleStrategy.PartitionedScaling)
	})
}

// maxNodes is how many nodes there are at most.
const maxNodes = 8

func (w *World) joinNode() {
	if len(w.nodes) == maxNodes {
		return
	}
	w.say("node node-%d joins", len(w.nodes))
	if err := w.addNode(); err != nil {
		w.violate("add a node: %w", err)
	}
}

// isRegistered reports whether a node has its object, where nodes have some.
func (w *World) isRegistered(node *kubelet) bool {
	_, exists := get[*corev1.Node](w.server, node.node)
	return exists || !w.settings.daemons.on
}

// deleteNode deletes the object of a node, whose machine is gone.
func (w *World) deleteNode() {
	node := pick(w.choices, w.nodes)
	if w.settings.oldKubelets || !w.isRegistered(node) {
		return
	}
	w.deleteObjectOf(node)
}

func (w *World) deleteObjectOf(node *kubelet) {
	w.say("node %s is deleted", node.node)
	node.deadSince, node.unready = w.clock.Now(), false
	w.server.remove(objectKey{"Node", node.node})
}

// registerNode brings a node back that was deleted.
func (w *World) registerNode() {
	for _, node := range w.nodes {
		if w.isRegistered(node) {
			continue
		}
		w.say("node %s registers again", node.node)
		if err := w.register(node); err != nil {
			w.violate("register a node: %w", err)
		}
		node.rebooted()
		return
	}
}

// changeNode changes one of the nodes that there are.
func (w *World) changeNode(what string, change func(*corev1.Node)) {
	node := pick(w.choices, w.nodes)
	if w.isRegistered(node) {
		w.say("%s %s", node.node, what)
		mutate(w.server, node.node, change)
	}
}

func (w *World) toggleCordon() {
	w.changeNode("is cordoned, or is so no more", func(n *corev1.Node) { n.Spec.Unschedulable = !n.Spec.Unschedulable })
}

// toggleTaint taints a node, or takes the taint off.
func (w *World) toggleTaint() {
	taint := corev1.Taint{Key: "example.io/dedicated", Effect: pick(w.choices, []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute})}
	w.changeNode("is tainted "+string(taint.Effect)+", or is so no more", func(n *corev1.Node) {
		if i := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key }); i >= 0 {
			n.Spec.Taints = slices.Delete(n.Spec.Taints, i, i+1)
			return
		}
		n.Spec.Taints = append(n.Spec.Taints, taint)
	})
}

func (w *World) changeRole() {
	w.changeNode("gets another role", func(n *corev1.Node) {
		n.Labels[nodeRole] = map[bool]string{true: "spare", false: workerRole}[n.Labels[nodeRole] == workerRole]
	})
}

func (w *World) changeZone() {
	w.changeNode("moves to another zone", func(n *corev1.Node) {
		n.Labels[nodeZone] = map[bool]string{true: "b", false: "a"}[n.Labels[nodeZone] == "a"]
	})
}

// toggleUnready lets a kubelet say that its node is not ready, or that it is again.
func (w *World) toggleUnready() {
	node := pick(w.choices, w.nodes)
	if !w.isRegistered(node) {
		return
	}
	node.unready = !node.unready
	w.say("kubelet: %s is not ready: %t", node.node, node.unready)
}

// toggleMaintenance begins to maintain a node, or ends it.
func (w *World) toggleMaintenance() {
	condition := pick(w.choices, maintained)
	w.changeNode("is maintained, or is so no more: "+string(condition), func(n *corev1.Node) {
		for _, other := range maintained {
			if nodeConditionIs(n, other) {
				setNodeCondition(n, other, corev1.ConditionFalse)
				return
			}
		}
		setNodeCondition(n, condition, corev1.ConditionTrue)
	})
}

// calmNodes ends what keeps nodes from having their pods. Nodes that were deleted, cordoned, tainted
// or got another role stay so.
func (w *World) calmNodes() {
	for _, node := range w.nodes {
		node.unready = false
		mutate(w.server, node.node, func(n *corev1.Node) {
			for _, condition := range maintained {
				if nodeConditionIs(n, condition) {
					setNodeCondition(n, condition, corev1.ConditionFalse)
				}
			}
		})
	}
	w.changeDaemons(func(set *appsv1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Selector = nil
		taking := 0
		for _, node := range all[*corev1.Node](w.server) {
			if takesPods(set, node) {
				taking++
			}
		}
		w.server.budget.minAvailable = min(w.server.budget.minAvailable, taking-1)
	})
}

// updateSome asks for another revision, for some of the nodes.
func (w *World) updateSome() {
	if w.failure != nil {
		return
	}
	others := slices.DeleteFunc(slices.Clone(w.settings.good()), func(r revision) bool { return r.name == w.wish.name })
	w.changePartitionOfNodes()
	w.changeSelectorOfNodes()
	w.ask(pick(w.choices, others))
}

// isOfDaemonInterest is what the controller of DaemonSets is told of nodes, see
// controllers/daemonset/watches.go.
func isOfDaemonInterest(before, after any) bool {
	old, wasNode := before.(*corev1.Node)
	node, isNode := after.(*corev1.Node)
	return !wasNode || !isNode || old == nil || node == nil || isAway(old) != isAway(node) ||
		!equalLabelsAndTaints(old, node)
}

func equalLabelsAndTaints(a, b *corev1.Node) bool {
	return hasLabels(a.Labels, b) && hasLabels(b.Labels, a) && slices.Equal(a.Spec.Taints, b.Spec.Taints)
}
