// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// How a run of a DaemonSet ends.

// isScaling reports whether, as was shown, pods are missing on nodes, or are too many.
func (d *daemonLaw) isScaling() bool {
	for name, pod := range d.of.seen {
		if d.isOfSet(pod) && (d.isToGo(pod) || d.nodes[targetOf(d.of.seen[name])] == nil) {
			return true
		}
	}
	for name, node := range d.nodes {
		if n := len(d.livingOn(name)); takesPods(d.set, node) && n != 1 || n > 1 {
			return true
		}
	}
	return false
}

// atRest is what is found of a DaemonSet at rest.
type atRest struct {
	*daemonLaw

	now     *appsv1beta1.DaemonSet
	missing []string
	// taking is how many nodes are to run a pod, misplaced how many others have one.
	taking, misplaced int
	// updated is how many nodes have a pod at the newest revision, and held those that have an
	// older one.
	updated int
	held    []*corev1.Node
}

func (r *atRest) say(format string, args ...any) {
	r.missing = append(r.missing, fmt.Sprintf(format, args...))
}

// whatIsMissing says what is not as the user asked for; empty if all is.
func (d *daemonLaw) whatIsMissing() string {
	w := d.of.world
	r := &atRest{daemonLaw: d, now: w.daemonSetIn(w.server.objects)}
	pods := map[string][]*corev1.Pod{}
	for _, pod := range w.podsOfSet() {
		if pod.Status.Phase == corev1.PodFailed && metav1.GetControllerOf(pod) == nil {
			continue // a user took it out, and it is left with its logs
		}
		pods[targetOf(pod)] = append(pods[targetOf(pod)], pod)
	}
	nodes := all[*corev1.Node](w.server)
	for _, name := range slices.Sorted(maps.Keys(nodes)) {
		r.lookAt(nodes[name], pods[name])
		delete(pods, name)
	}
	for name, left := range pods {
		r.say("%d pods are left of node %s, which is no more", len(left), name)
	}
	r.checkHeld()
	r.checkStatus()
	return strings.Join(r.missing, "; ")
}

// lookAt says what is wrong with the pods of a node.
func (r *atRest) lookAt(node *corev1.Node, pods []*corev1.Pod) {
	takes := takesPods(r.now, node)
	if takes {
		r.taking++
	} else if len(pods) > 0 {
		r.misplaced++
	}
	mayLack := r.isPartitioned() && r.partition() > 0
	switch {
	case len(pods) > 1:
		r.say("%s has %d pods", node.Name, len(pods))
	case len(pods) == 0 && (!takes || mayLack):
	case len(pods) == 0:
		r.say("%s has no pod", node.Name)
	case !keepsPods(r.now, node):
		r.say("%s has a pod", node.Name)
	default:
		r.lookAtPod(node, pods[0])
	}
}

// lookAtPod says what is wrong with a pod.
func (r *atRest) lookAtPod(node *corev1.Node, pod *corev1.Pod) {
	l, w := r.of, r.of.world
	template := l.templateOf(revisionOf(pod))
	switch revision := revisionOf(pod); {
	case template == nil:
		r.say("%s is at %s, of which nothing is known", pod.Name, revision)
		return
	case revision == r.now.Status.UpdateRevision:
		r.updated++
		template = &r.now.Spec.Template
	default:
		r.held = append(r.held, node)
	}
	set := shown(r.now).DeepCopy()
	set.Spec.Template = *template
	if wanted := images(&corev1.Pod{Spec: template.Spec}); !maps.EqualFunc(ownImages(pod), wanted, means) {
		r.say("%s has images %v instead of %v", pod.Name, images(pod), wanted)
		return
	}
	if hasDrainedLabel(pod) {
		r.say("%s is still drained", pod.Name)
	}
	if !w.isAvailable(pod) || !w.settings.unserved && !w.slices.sendsTo(pod) {
		r.say("%s on %s does not serve", pod.Name, node.Name)
		return
	}
	for _, words := range slices.Concat(l.whatSizeIsWrong(pod, &template.Spec), l.whatIsOutOfDate(pod, set)) {
		r.say("%s: %s", pod.Name, words)
	}
}

// checkHeld asserts that old pods are kept by the selector, or by the partition: then as many nodes
// are updated as it leaves.
func (r *atRest) checkHeld() {
	rolling := r.now.Spec.UpdateStrategy.RollingUpdate
	concerned := r.taking + r.misplaced
	partition := min(pods(rolling.Partition, "0", concerned, false), concerned)
	for _, node := range r.held {
		isSelected := rolling.Selector == nil || labels.SelectorFromSet(rolling.Selector.MatchLabels).Matches(labels.Set(node.Labels))
		if isSelected && r.updated < r.updated+len(r.held)-partition {
			r.say("the pod of %s is old, %d of %d are updated, the partition is %d", node.Name, r.updated, r.updated+len(r.held), partition)
		}
	}
}

// checkStatus asserts that the status says what is.
func (r *atRest) checkStatus() {
	status := r.now.Status
	if revision, ok := get[*appsv1.ControllerRevision](r.of.world.server, setName+"-"+status.UpdateRevision); !ok || !metav1.IsControlledBy(revision, r.now) {
		r.say("its update revision %q is not one of its own", status.UpdateRevision)
	}
	if int(status.DesiredNumberScheduled) != r.taking || int(status.NumberMisscheduled) != r.misplaced {
		r.say("the status says %d nodes are to run a pod and %d others have one, it is %d and %d",
			status.DesiredNumberScheduled, status.NumberMisscheduled, r.taking, r.misplaced)
	}
	if status.NumberReady != status.CurrentNumberScheduled || status.NumberAvailable != status.CurrentNumberScheduled {
		r.say("of %d pods, %d are ready and %d available", status.CurrentNumberScheduled, status.NumberReady, status.NumberAvailable)
	}
	isDone := len(r.held) > 0 || r.taking+r.misplaced == 0 || r.now.Spec.UpdateStrategy.RollingUpdate.Selector != nil || r.kept() > 0 || status.CurrentRevision == status.UpdateRevision
	if !meta.IsStatusConditionTrue(status.Conditions, appsv1beta1.ConditionReady) || len(status.Blockers) > 0 || !isDone || status.ObservedGeneration != r.now.Generation {
		r.say("status says: %s, blockers %v, revisions %s and %s", conditionWords(shown(r.now)), status.Blockers, status.CurrentRevision, status.UpdateRevision)
	}
}
