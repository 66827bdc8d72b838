// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// asDaemons makes the set a DaemonSet, and changes its settings.
func asDaemons(change func(*settings)) func(*settings) {
	return func(s *settings) {
		s.daemons.on = true
		if change != nil {
			change(s)
		}
	}
}

func recreates(s *settings) { s.policy = appsv1beta1.RecreatePodUpdateStrategyType }

// withSurge makes a new pod before the old one of a node goes.
func withSurge(s *settings) {
	recreates(s)
	s.daemons.maxSurge = 1
}

// onNode changes a node.
func onNode(name string, change func(*corev1.Node)) func(*World) {
	return func(w *World) { mutate(w.server, name, change) }
}

func taintedBy(effect corev1.TaintEffect) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "example.io/dedicated", Effect: effect})
	}
}

func relabelled(role string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[nodeRole] = role }
}

func updatesZone(zone string) func(*World) {
	return func(w *World) {
		w.changeDaemons(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Selector = inZone(zone) })
	}
}

// Nothing disturbs a DaemonSet: what each change comes to, and that it is at rest. There are three
// nodes, of which node-0 and node-2 are in zone a.
func TestDaemonSets(t *testing.T) {
	for _, test := range []struct {
		name     string
		settings func(*settings)
		changes  []func(*World)
		// pods, updated, kept and restarts are what is left, as of CloneSets.
		pods, updated, kept, restarts int
		// stopped: not every pod is at the revision asked for last.
		stopped bool
	}{
		{name: "in place", changes: []func(*World){to("b")}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "labels only", changes: []func(*World){to("label")}, pods: 3, updated: 3, kept: 3},
		{name: "a restart", changes: []func(*World){to("restart")}, pods: 3, updated: 3, kept: 3, restarts: 6},
		{name: "by recreation, for a field", changes: []func(*World){to("env")}, pods: 3, updated: 3},
		{name: "by recreation, as asked for", settings: recreates, changes: []func(*World){to("b")}, pods: 3, updated: 3},
		{name: "with a surge", settings: withSurge, changes: []func(*World){to("b")}, pods: 3, updated: 3},
		{
			name: "with a surge and minReadySeconds", changes: []func(*World){to("b")},
			settings: func(s *settings) { withSurge(s); s.minReadySeconds = 5 }, pods: 3, updated: 3,
		},
		{name: "an image that does not exist, and back", changes: []func(*World){to("missing"), to("a")}, pods: 3, updated: 3, kept: 3, restarts: 2},
		{name: "with a surge, an image that does not exist, and back", settings: withSurge, changes: []func(*World){to("missing"), to("a")}, pods: 3, updated: 3, kept: 3},
		{name: "to a partition", changes: []func(*World){keepAt(2), to("b")}, pods: 3, updated: 1, kept: 3, restarts: 1},
		{name: "to a partition and on", changes: []func(*World){keepAt(2), to("b"), keepAt(0)}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "to a partition, which grows", changes: []func(*World){keepAt(2), to("b"), keepAt(3)}, pods: 3, updated: 1, kept: 3, restarts: 1},
		{name: "nodes of a zone", changes: []func(*World){updatesZone("a"), to("b")}, pods: 3, updated: 2, kept: 3, restarts: 2},
		{name: "nodes of a zone, and all", changes: []func(*World){updatesZone("a"), to("b"), updatesZone("")}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "nodes of a zone with a surge", settings: withSurge, changes: []func(*World){updatesZone("b"), to("b")}, pods: 3, updated: 1, kept: 2},
		{name: "paused", changes: []func(*World){(*World).togglePause, to("b")}, pods: 3, kept: 3, stopped: true},
		{name: "a new node at a partition", changes: []func(*World){keepAt(3), to("b"), (*World).joinNode}, pods: 4, updated: 1, kept: 3},
		{
			name: "a new node at a partition that limits new pods", changes: []func(*World){keepAt(4), to("b"), (*World).joinNode},
			settings: func(s *settings) { s.daemons.partitioned = true }, pods: 3, kept: 3,
		},
		{name: "a node gets another role, and back", changes: []func(*World){onNode("node-1", relabelled("spare")), onNode("node-1", relabelled(workerRole))}, pods: 3, updated: 3, kept: 2},
		{name: "a node gets another role", changes: []func(*World){onNode("node-1", relabelled("spare")), to("b")}, pods: 2, updated: 2, kept: 2, restarts: 2},
		{name: "a taint keeps new pods away", changes: []func(*World){onNode("node-1", taintedBy(corev1.TaintEffectNoSchedule)), to("b")}, pods: 3, updated: 3, kept: 3, restarts: 3},
		{name: "a taint evicts", changes: []func(*World){onNode("node-1", taintedBy(corev1.TaintEffectNoExecute)), to("b")}, pods: 2, updated: 2, kept: 2, restarts: 2},
		{name: "a node is deleted", changes: []func(*World){func(w *World) { w.deleteObjectOf(w.nodes[1]) }}, pods: 2, updated: 2, kept: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			s := reference()
			asDaemons(test.settings)(&s)
			expectLeft(g, s, test.changes, left{test.pods, test.updated, test.kept, test.restarts}, test.stopped)
		})
	}
}

// daemonRollouts are the reference rollouts of DaemonSets.
var daemonRollouts = []rollout{
	{"daemons, in place", 9, asDaemons(nil), to("b")},
	{"daemons, by recreation", 9, asDaemons(recreates), to("b")},
	{"daemons, with a surge", 9, asDaemons(withSurge), to("b")},
	{"daemons, with a surge, each pod held by a hook", 15, asDaemons(func(s *settings) {
		withSurge(s)
		hookedBy(hooks{preNormal: true, preDelete: true, marksDelete: true})(s)
	}), to("b")},
	{"daemons, to a partition", 3, asDaemons(nil), func(w *World) { keepAt(2)(w); to("b")(w) }},
	{"daemons, a node gets another role", 7, asDaemons(nil), func(w *World) { onNode("node-1", relabelled("spare"))(w); to("b")(w) }},
	{"daemons, a node joins", 11, asDaemons(nil), func(w *World) { w.joinNode(); to("b")(w) }},
	{"daemons, taken over from another set", 12, asDaemons(nil), func(w *World) { to("b")(w); w.orphan() }},
}

// besideOld is the state of a pod that was made beside the old one of its node.
var besideOld = situation{name: "Surging", to: "b", settings: withSurge, at: func(w *World, pod *corev1.Pod) bool {
	return len(w.podsOn(pod.Spec.NodeName)) == 2
}}

// ofNodeOf is an overtaking that changes the node of the pod.
func ofNodeOf(name string, change, back func(*World, *kubelet)) overtaking {
	return overtaking{name, func(w *World, pod string) func() {
		held, ok := get[*corev1.Pod](w.server, pod)
		if !ok {
			return nil
		}
		node := w.nodeNamed(targetOf(held))
		change(w, node)
		if back == nil {
			return nil
		}
		return func() { back(w, node) }
	}, false}
}

// changes returns what changes the object of a node.
func changes(change func(*corev1.Node)) func(*World, *kubelet) {
	return func(w *World, node *kubelet) { mutate(w.server, node.node, change) }
}

func saysUnready(unready bool) func(*World, *kubelet) {
	return func(_ *World, node *kubelet) { node.unready = unready }
}

func hasCondition(status corev1.ConditionStatus) func(*World, *kubelet) {
	return changes(func(n *corev1.Node) { setNodeCondition(n, corev1.NodeDrainInProgress, status) })
}

func untainted(n *corev1.Node) { n.Spec.Taints = nil }

// daemonOvertakings are those of other kinds that a DaemonSet has, and those of nodes.
var daemonOvertakings = slices.Concat(
	slices.DeleteFunc(slices.Clone(overtakings), func(o overtaking) bool { return o.name == "scale-in" }),
	[]overtaking{
		ofNodeOf("node not ready", saysUnready(true), saysUnready(false)),
		ofNodeOf("node maintained", hasCondition(corev1.ConditionTrue), hasCondition(corev1.ConditionFalse)),
		ofNodeOf("node of another role", changes(relabelled("spare")), changes(relabelled(workerRole))),
		ofNodeOf("node tainted", changes(taintedBy(corev1.TaintEffectNoSchedule)), changes(untainted)),
		ofNodeOf("pods evicted", changes(taintedBy(corev1.TaintEffectNoExecute)), changes(untainted)),
		ofNodeOf("node deleted", func(w *World, node *kubelet) { w.deleteObjectOf(node) }, nil),
	},
)

// Any state of a pod of a DaemonSet, overtaken by anything, ends ready.
func TestDaemonSetsAnyStateAnyRevision(t *testing.T) {
	for i, s := range append(slices.Clone(situations), besideOld) {
		for j, o := range daemonOvertakings {
			if isLeftOut(i+j, 5) {
				continue
			}
			t.Run(s.name+"/"+o.name, func(t *testing.T) { overtake(NewWithT(t), asDaemons(nil), s, o) })
		}
	}
}

var daemonSeeds = flag.Int("daemon-seeds", 300, "how many random runs of DaemonSets")

// Random runs of DaemonSets, as TestSeeds.
func TestDaemonSeeds(t *testing.T) { runSeeds(t, "FuzzRunDaemons", *daemonSeeds, RunDaemons) }

func FuzzRunDaemons(f *testing.F) { fuzz(f, RunDaemons) }
