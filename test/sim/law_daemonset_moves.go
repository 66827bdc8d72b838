// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What the law says of pods of DaemonSets that are made, deleted, or moved to another revision.

// checkCreation asserts that a pod is made only on a node that is to run one and has none; beside an
// old one only where a surge lets that be, and has room for it. It is at the newest revision.
func (d *daemonLaw) checkCreation(w write) {
	if d == nil || d.set == nil {
		return
	}
	pod, _ := get[*corev1.Pod](d.of.world.server, w.obj.GetName()) // it was just made
	node := targetOf(pod)
	shown, living := d.shownOn(node), d.livingOn(node)
	violate := d.of.world.violate
	switch {
	case !takesPods(d.set, d.nodes[node]):
		violate("%s for node %s, which is to run none", w.words, node)
	case !d.isNewest(pod):
		violate("%s at %s, which is not what the user asked for last", w.words, revisionOf(pod))
	case d.made[node] > 0, d.surge() == 0 && len(shown) > 0, len(living) > 1:
		violate("%s for node %s, which has %d pods already", w.words, node, len(shown)+d.made[node])
	case len(living) == 1:
		d.checkSurge(w, pod, living[0])
	case d.isPartitioned() && len(shown) == 0 && d.mayMake()-d.madeInAll() <= 0:
		violate("invariant 2: %s for node %s, and the partition keeps it without one", w.words, node)
	}
	d.made[node]++
	if burst := max(pods(d.set.Spec.BurstReplicas, "250", d.desired(), false), 1); d.madeInAll() > burst {
		violate("%s is pod %d that is made at a time, burstReplicas is %d", w.words, d.madeInAll(), burst)
	}
}

func (d *daemonLaw) madeInAll() int {
	n := 0
	for _, made := range d.made {
		n += made
	}
	return n
}

// checkSurge asserts that a new pod is made beside an old one only if it is its turn, and no more
// nodes have two than may have. A node whose old pod does not serve needs no room.
func (d *daemonLaw) checkSurge(w write, made, old *corev1.Pod) {
	node := targetOf(old)
	if d.isNewest(old) && revisionOf(old) == revisionOf(made) {
		d.of.world.violate("%s beside %s, which is as new", w.words, old.Name)
	}
	if isAway(d.nodes[node]) {
		d.of.world.violate("%s, though node %s is not ready or is being maintained", w.words, node)
	}
	d.checkMove(w, old)
	with := 1
	for name := range d.nodes {
		serves := slices.ContainsFunc(d.livingOn(name), func(pod *corev1.Pod) bool {
			return !d.isNewest(pod) && conditionIs(pod, corev1.PodReady, corev1.ConditionTrue)
		})
		if name != node && serves && len(d.livingOn(name))+d.made[name] > 1 {
			with++
		}
	}
	if limit := d.surge(); with > limit && d.of.looksAvailable(old, d.of.seenSet) {
		d.of.world.violate("%s: %d nodes have two pods, maxSurge is %d", w.words, with, limit)
	}
}

// checkDeletion asserts that a pod is deleted for an update only if it is its turn. One that is to go
// in any case, that a user asks to be deleted, or that is at the newest revision and goes for another
// reason is none of these; nor is one whose deletion has begun.
func (d *daemonLaw) checkDeletion(w write) {
	pod, ok := w.before.(*corev1.Pod)
	if d == nil || !ok || d.set == nil || pod.DeletionTimestamp != nil {
		return
	}
	_, isAsked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	switch {
	case d.isToGo(pod):
		d.gone++
		if burst := max(pods(d.set.Spec.BurstReplicas, "250", d.desired(), false), 1); d.gone > burst {
			d.of.world.violate("%s is pod %d that goes at a time, burstReplicas is %d", w.words, d.gone, burst)
		}
	case d.isRelieved(pod), isAsked, d.isNewest(pod), d.of.hasLostRevision(pod), lifecycleStateOf(pod) == appsv1beta1.LifecycleStatePreparingDelete:
	case w.isAbout("evict Pod") && d.of.world.settings.resizes.on: // its resize failed, see checkKept
	case d.surge() > 0 && takesPods(d.set, d.nodes[targetOf(pod)]):
		d.of.world.violate("%s, and no new pod is available beside it", w.words)
	default:
		d.checkMove(w, pod)
	}
}

// checkPartition asserts that a pod is moved to the newest revision only, and if it is its turn. A
// pod at the newest revision is never moved.
func (d *daemonLaw) checkPartition(w write) {
	before, after, ok := d.of.podsOf(w)
	if !ok || d.set == nil || revisionOf(before) == revisionOf(after) {
		return
	}
	if d.isNewest(before) || !d.isNewest(after) {
		d.of.world.violate("%s moves it from %s to %s, which is not what the user asked for last", w.words, revisionOf(before), revisionOf(after))
	}
	if node := targetOf(before); isAway(d.nodes[node]) {
		d.of.world.violate("%s, though node %s is not ready or is being maintained", w.words, node)
	}
	d.checkMove(w, before)
}

// checkMove asserts invariant 2: the pod of a node is moved to the newest revision only if the
// selector selects the node, and if as many old ones stay as the partition says: those of nodes that
// are not selected, or have lower names. While there is no other revision to keep pods at, the
// partition keeps none.
func (d *daemonLaw) checkMove(w write, pod *corev1.Pod) {
	node := targetOf(pod)
	defer d.moved.Insert(node)
	if d.moved.Has(node) {
		return
	}
	if rests(d.of.seenSet) {
		d.of.world.violate("%s, though no update may begin", w.words)
	}
	if !d.isSelected(node) {
		d.of.world.violate("invariant 2: %s, and the selector does not select node %s", w.words, node)
	}
	if d.isOfTemplate(d.set.Status.CurrentRevision) {
		return
	}
	var left []string
	for _, name := range slices.Sorted(maps.Keys(d.nodes)) {
		if name != node && d.isOld(name) && (name < node || !d.isSelected(name)) {
			left = append(left, name)
		}
	}
	if needed := min(d.kept(), d.concerned()); len(left) < needed {
		d.of.world.violate("invariant 2: %s, of the nodes whose pods are to be kept %v are left, the partition is %d", w.words, left, needed)
	}
}

// isSelected reports whether the selector of the update selects a node.
func (d *daemonLaw) isSelected(node string) bool {
	selector := d.set.Spec.UpdateStrategy.RollingUpdate.Selector
	return selector == nil || labels.SelectorFromSet(selector.MatchLabels).Matches(labels.Set(d.nodes[node].Labels))
}

// isOld reports whether a node has a pod that stays, and none at the newest revision.
func (d *daemonLaw) isOld(node string) bool {
	living := d.livingOn(node)
	isGoing := func(pod *corev1.Pod) bool { return lifecycleStateOf(pod) == appsv1beta1.LifecycleStatePreparingDelete }
	return keepsPods(d.set, d.nodes[node]) && len(living) > 0 && !d.moved.Has(node) && !slices.ContainsFunc(living, d.isNewest) && !slices.ContainsFunc(living, isGoing)
}

// checkFinished asserts that no rollout is taken for finished while a pod is at another revision, the
// partition or the selector keeps some back, or no node has or is to run one.
func (d *daemonLaw) checkFinished(w write, revision string) {
	rolling := d.set.Spec.UpdateStrategy.RollingUpdate
	if d.concerned() == 0 || d.kept() > 0 || rolling.Selector != nil {
		d.of.world.violate("%s takes %s for finished, with %d nodes, partition %d, selector %v", w.words, revision, d.concerned(), d.kept(), rolling.Selector)
	}
	for name, pod := range d.of.seen {
		now, exists := get[*corev1.Pod](d.of.world.server, name)
		isOld := revisionOf(pod) != revision && exists && now.DeletionTimestamp == nil && revisionOf(now) != revision
		if isOld && d.isOfSet(pod) && !d.isToGo(pod) && !d.isRelieved(pod) && !isAway(d.nodes[targetOf(pod)]) {
			d.of.world.violate("%s takes %s for finished, and %s is at %s", w.words, revision, name, revisionOf(pod))
		}
	}
}
