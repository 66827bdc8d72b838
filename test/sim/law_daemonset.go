// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of DaemonSets in words of their own: their pods are told by their nodes.

// daemonLaw is what the law knows of a DaemonSet. nil knows and asserts nothing.
type daemonLaw struct {
	of *law
	// set and nodes are what this reconciliation was shown.
	set   *appsv1beta1.DaemonSet
	nodes map[string]*corev1.Node
	// made counts the pods that this reconciliation has made, by their nodes; moved are the
	// nodes whose pod it has begun to update, and gone counts the pods that it has deleted
	// though nothing is to be updated.
	made  map[string]int
	moved sets.Set[string]
	gone  int
	// ready are the nodes whose pod was ready when the operator took it out of service, and that
	// have had no ready one since.
	ready sets.Set[string]
	// unanswered holds the nodes whose pod was taken out by a write that was not answered, with
	// what that was decided by.
	unanswered map[string]string
}

func newDaemonLaw(l *law) *daemonLaw {
	return &daemonLaw{of: l, unanswered: map[string]string{}, ready: sets.New[string]()}
}

// begin is called before a reconciliation.
func (d *daemonLaw) begin() {
	if d != nil {
		d.made, d.moved, d.gone = map[string]int{}, sets.New[string](), 0
	}
}

// notice is told of what a reconciliation is shown.
func (d *daemonLaw) notice(cache *cache) {
	d.set, d.nodes = d.of.world.daemonSetIn(cache.objects), map[string]*corev1.Node{}
	for _, obj := range cache.list("Node") {
		d.nodes[obj.GetName()], _ = obj.(*corev1.Node)
	}
}

// tolerated are the taints that each pod of a DaemonSet tolerates: docs/daemonset.md says that pods
// come to cordoned nodes and stay on those that are not ready.
var tolerated = []corev1.Toleration{
	{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule},
	{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
	{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute},
}

// takesPods reports whether a node is to run a pod of the set, keepsPods whether a pod that runs
// there stays.
func takesPods(set *appsv1beta1.DaemonSet, node *corev1.Node) bool {
	return keepsPods(set, node) && !isKeptAway(tolerated, node, corev1.TaintEffectNoSchedule)
}

func keepsPods(set *appsv1beta1.DaemonSet, node *corev1.Node) bool {
	return node != nil && hasLabels(set.Spec.Template.Spec.NodeSelector, node) && !isKeptAway(tolerated, node, corev1.TaintEffectNoExecute)
}

// maintained are the conditions of a node on which nothing is updated.
var maintained = []corev1.NodeConditionType{
	corev1.NodeDrainInProgress, corev1.NodeDrained, corev1.NodeMaintenanceInProgress, corev1.NodeGracefulNodeShutdownInProgress,
}

// isAway reports whether a node is not ready, or is being maintained: no pod is updated there.
func isAway(node *corev1.Node) bool {
	return !nodeConditionIs(node, corev1.NodeReady) || slices.ContainsFunc(maintained, func(c corev1.NodeConditionType) bool { return nodeConditionIs(node, c) })
}

// shownOn returns the pods of the set that were shown on a node, or as made for it.
func (d *daemonLaw) shownOn(node string) []*corev1.Pod {
	var found []*corev1.Pod
	for _, name := range slices.Sorted(maps.Keys(d.of.seen)) {
		pod := d.of.seen[name]
		if targetOf(pod) == node && d.isOfSet(pod) {
			found = append(found, pod)
		}
	}
	return found
}

// isOfSet reports whether a pod is one of the set: a user may have taken it out.
func (d *daemonLaw) isOfSet(pod *corev1.Pod) bool {
	return metav1.IsControlledBy(pod, d.set) && (pod.Labels["app"] == setName || pod.DeletionTimestamp != nil)
}

// livingOn returns those of them that go on.
func (d *daemonLaw) livingOn(node string) []*corev1.Pod {
	return slices.DeleteFunc(d.shownOn(node), isOver)
}

// isOver reports whether a pod is being deleted, or has ended.
func isOver(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// surge returns how many nodes may run two pods.
func (d *daemonLaw) surge() int {
	rolling := d.set.Spec.UpdateStrategy.RollingUpdate
	if rolling.RollingUpdateType != appsv1beta1.StandardDaemonSetRollingUpdateType {
		return 0
	}
	return pods(rolling.MaxSurge, "0", d.desired(), true)
}

// concerned returns how many nodes an update is about: those that are to run a pod, and those that
// keep the one that they have.
func (d *daemonLaw) concerned() int {
	n := 0
	for name, node := range d.nodes {
		if takesPods(d.set, node) || keepsPods(d.set, node) && len(d.livingOn(name)) > 0 {
			n++
		}
	}
	return n
}

// kept returns how many of the nodes that an update is about are to stay as they are.
func (d *daemonLaw) kept() int {
	return pods(d.set.Spec.UpdateStrategy.RollingUpdate.Partition, "0", d.concerned(), false)
}

// desired returns how many nodes are to run a pod.
func (d *daemonLaw) desired() int {
	n := 0
	for _, node := range d.nodes {
		if takesPods(d.set, node) {
			n++
		}
	}
	return n
}

// isNewest reports whether a pod is at the revision that the user asked for last.
func (d *daemonLaw) isNewest(pod *corev1.Pod) bool { return d.isOfTemplate(revisionOf(pod)) }

func (d *daemonLaw) isOfTemplate(revision string) bool {
	own, wanted := d.of.templateOf(revision), d.set.Spec.Template
	return own != nil && apiequality.Semantic.DeepEqual(own.Spec, wanted.Spec) && maps.Equal(own.Labels, wanted.Labels) && maps.Equal(own.Annotations, wanted.Annotations)
}

// isToGo reports whether a pod is to go whatever its revision is, as it was shown: its node runs no
// pod of the set, it has ended, or another one stays on the node. Of two, the older one stays;
// where there is a surge, one at the newest revision besides.
func (d *daemonLaw) isToGo(pod *corev1.Pod) bool {
	if d.set == nil {
		return false
	}
	if shown := d.of.seen[pod.Name]; shown != nil {
		pod = shown
	}
	node := d.nodes[targetOf(pod)]
	if !keepsPods(d.set, node) || isOver(pod) || pod.Spec.NodeName == "" && !takesPods(d.set, node) {
		return true
	}
	return slices.ContainsFunc(d.livingOn(node.Name), func(other *corev1.Pod) bool {
		return other.Name != pod.Name && isOlder(other, pod) && (d.surge() == 0 || d.isNewest(other) == d.isNewest(pod))
	})
}

// leavesAlone reports whether a pod is on a node that runs none of the set, or where none is updated.
func (d *daemonLaw) leavesAlone(pod *corev1.Pod) bool {
	return d != nil && (d.isToGo(pod) || isAway(d.nodes[targetOf(pod)]))
}

// isOlder reports whether a pod was there before another one. One that has a node counts as older
// than one that has none.
func isOlder(a, b *corev1.Pod) bool {
	if hasNode := a.Spec.NodeName != ""; hasNode != (b.Spec.NodeName != "") {
		return hasNode
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name)) < 0
}

// isRelieved reports whether an old pod may go since a new one is available beside it, or since it
// does not serve while there is a new one.
func (d *daemonLaw) isRelieved(pod *corev1.Pod) bool {
	if d.surge() == 0 {
		return false
	}
	return slices.ContainsFunc(d.livingOn(targetOf(pod)), func(other *corev1.Pod) bool {
		shown := d.of.seen[pod.Name]
		serves := shown != nil && conditionIs(shown, corev1.PodReady, corev1.ConditionTrue)
		return d.isNewest(other) && revisionOf(other) != revisionOf(pod) && (!serves || d.of.looksAvailable(other, d.of.seenSet))
	})
}

// checkBudget asserts that no pod is taken out of service, while as many nodes that are to run one
// have none that is available as may have: as far as was shown, and by what the operator took out
// itself. Nodes that are not ready or are being maintained count for nothing, and no update of their
// pods is begun.
func (d *daemonLaw) checkBudget(w write, pod *corev1.Pod) {
	l, node := d.of, targetOf(pod)
	if d.isToGo(pod) || d.isRelieved(pod) {
		return
	}
	if completes := isKeptOut(pod) && w.isAbout("patch Pod"); isAway(d.nodes[node]) && !completes {
		l.world.violate("%s, though node %s is not ready or is being maintained", w.words, node)
	}
	d.checkReady(w, pod)
	served := !l.disturbed.Has(node) && l.wasServed(pod)
	if served || !w.unheard {
		l.disturbed.Insert(node)
	}
	if !served {
		return
	}
	if w.unheard {
		d.unanswered[node] = d.decidedBy()
	} else {
		delete(d.unanswered, node)
	}
	out := d.out(node)
	if limit := d.maxUnavailable(); len(out) >= limit {
		l.world.violate("invariant 1: %s takes out one pod too many: %v have none that is available, maxUnavailable is %d", w.words, out, limit)
	}
}

// checkReady asserts that the operator has no more ready pods out of service at a time than may be
// unavailable, be they available or not yet: two updates within minReadySeconds take no second one.
// What a write did that was not answered, it cannot know.
func (d *daemonLaw) checkReady(w write, pod *corev1.Pod) {
	node, shown := targetOf(pod), d.of.seen[pod.Name]
	if w.unheard || d.ready.Has(node) || shown == nil || !isInService(shown) || !isInService(pod) {
		return
	}
	d.ready.Insert(node)
	isVacant := func(name string) bool { return d.isPartitioned() && len(d.shownOn(name)) == 0 && d.made[name] == 0 }
	out := slices.DeleteFunc(sets.List(d.ready), isVacant) // the partition keeps it without a pod, as long as it has room for no more
	if limit := d.maxUnavailable(); len(out) > limit {
		d.of.world.violate("%s takes a ready pod out of service, those of %v are, maxUnavailable is %d", w.words, out, limit)
	}
}

// isInService reports whether a pod is ready, for however long.
func isInService(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) && !isKeptOut(pod)
}

// look sees which nodes have a ready pod again, or are to have none for now.
func (d *daemonLaw) look() {
	if d == nil {
		return
	}
	now, back := d.of.world.daemonSetIn(d.of.world.server.objects), sets.New[string]()
	for _, pod := range all[*corev1.Pod](d.of.world.server) {
		if isInService(pod) {
			back.Insert(targetOf(pod))
		}
	}
	for name := range d.ready {
		node, exists := get[*corev1.Node](d.of.world.server, name)
		if back.Has(name) || !exists || now == nil || !takesPods(now, node) || isAway(node) {
			d.ready.Delete(name)
		}
	}
}

func (d *daemonLaw) maxUnavailable() int {
	return max(pods(d.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable, "1", d.desired(), true), 1)
}

// out returns the other nodes that are to run a pod and have none that is available. Nodes that are
// to have none for now, by the partition, are not among them.
func (d *daemonLaw) out(but string) []string {
	var found []string
	vacant := 0
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		node := d.nodes[name]
		by, is := d.unanswered[name]
		isAvailable := slices.ContainsFunc(d.livingOn(name), func(pod *corev1.Pod) bool { return d.of.looksAvailable(pod, d.of.seenSet) })
		switch {
		case name == but, !takesPods(d.set, node), isAway(node):
		case is && by != d.decidedBy() && isAvailable: // by what is known now, another pod may be the first
		case len(d.shownOn(name)) == 0 && d.made[name] == 0 && d.isPartitioned():
			vacant++
		case d.of.disturbed.Has(name), !isAvailable:
			found = append(found, name)
		}
	}
	if vacant > 0 {
		found = append(found, slices.Repeat([]string{"one that gets a pod"}, min(vacant, max(d.mayMake()-d.madeInAll(), 0)))...)
	}
	return found
}

// decidedBy stands for what a decision was made by: the spec, the nodes, and how much of the
// history is known.
func (d *daemonLaw) decidedBy() string {
	cache := d.of.world.manager.cache
	return fmt.Sprint(d.set.Generation, " ", cache.read["Node"], " ", cache.read["ControllerRevision"])
}

func (d *daemonLaw) isPartitioned() bool {
	return d.set.Spec.ScaleStrategy != nil && d.set.Spec.ScaleStrategy.PartitionedScaling
}

// mayMake returns on how many nodes without a pod the partition lets one be made.
func (d *daemonLaw) mayMake() int {
	updated := 0
	for _, pod := range d.of.seen {
		if d.isOfSet(pod) && pod.DeletionTimestamp == nil && d.isNewest(pod) {
			updated++
		}
	}
	return max(d.desired()-updated-d.partition(), 0)
}

func (d *daemonLaw) partition() int {
	return pods(d.set.Spec.UpdateStrategy.RollingUpdate.Partition, "0", d.desired(), false)
}
