// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// nodeFacts is what is known of one node.
type nodeFacts struct {
	name string
	placement
	// gone: there is no such node any more, or not yet.
	gone bool
	// pods are those of the set that run on the node or are made for it.
	pods []*corev1.Pod
}

// placeFacts is what the number of pods depends on.
type placeFacts struct {
	// nodes are all nodes that run a pod, are to run one or had one, by name.
	nodes []nodeFacts
	// mark is what pods at the update revision have in their label.
	mark string
	// surges is on how many nodes a new pod may run beside the old one; 0 for no surge.
	surges int
	// burst is how many pods are made, and how many go, at a time.
	burst int
	// mayCreate is how many nodes without a pod may get one; negative for all.
	mayCreate int
	// mayReplace tells of a node whether its failed pod may be replaced now.
	mayReplace func(node string) bool
	// lifecycle and minReadySeconds say when a pod is available.
	lifecycle       *appsv1beta1.Lifecycle
	minReadySeconds int32
	now             time.Time
}

// placePlan is the decision on the number of pods.
type placePlan struct {
	// create are the nodes on which a pod is made. remove are the pods that go, and failed those
	// among them that have ended.
	create         []string
	remove, failed []*corev1.Pod
	// staying are the pods that stay, one for each node, in the order of nodes; of two pods on a
	// node with a surge, the older one.
	staying []*corev1.Pod
	// vacant are the nodes that mayCreate leaves without a pod.
	vacant []string
	// awaited are the new pods of a surge beside which the old ones stay.
	awaited []*corev1.Pod
}

// planNodes decides on which nodes a pod is made, and which pods go. It looks at each node by
// itself; pods that are being deleted are there until they are gone.
func planNodes(f placeFacts) placePlan {
	plan := placePlan{}
	for _, n := range f.nodes {
		switch {
		case n.gone:
			// The garbage collector of pods deletes those that were bound to the node.
			plan.drop(slices.DeleteFunc(slices.Clone(n.pods), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != "" })...)
		case !n.keeps:
			plan.drop(n.pods...)
		default:
			f.planNode(&plan, n)
		}
	}
	plan.remove = plan.remove[:min(len(plan.remove), f.burst)]
	if f.mayCreate >= 0 && f.mayCreate < len(plan.create) {
		plan.create, plan.vacant = plan.create[:f.mayCreate], plan.create[f.mayCreate:]
	}
	plan.create = plan.create[:min(len(plan.create), f.burst)]
	return plan
}

// drop lets pods go that are not being deleted already.
func (p *placePlan) drop(pods ...*corev1.Pod) {
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil {
			p.remove = append(p.remove, pod)
		}
	}
}

// planNode decides on a node that keeps its pod.
func (f placeFacts) planNode(plan *placePlan, n nodeFacts) {
	var living []*corev1.Pod
	leaving := false
	for _, pod := range n.pods {
		switch {
		case pod.DeletionTimestamp != nil:
			leaving = true
		case inplace.HasEnded(pod):
			f.replace(plan, n, pod)
			leaving = true
		case pod.Spec.NodeName == "" && !n.runs:
			plan.drop(pod) // the scheduler will not bind it
		default:
			living = append(living, pod)
		}
	}
	slices.SortFunc(living, compareAge)
	switch {
	case len(living) == 0 && n.runs && !leaving:
		plan.create = append(plan.create, n.name)
	case len(living) == 0:
	case f.surges == 0:
		plan.staying = append(plan.staying, living[0])
		plan.drop(living[1:]...)
	default:
		plan.staying = append(plan.staying, f.keepTwo(plan, living))
	}
}

// replace lets a pod go that has ended, if its time has come. One that a hook holds already does not
// fail once more.
func (f placeFacts) replace(plan *placePlan, n nodeFacts, pod *corev1.Pod) {
	switch {
	case pod.Labels[appsv1beta1.LifecycleStateKey] == string(appsv1beta1.LifecycleStatePreparingDelete):
		plan.drop(pod)
	case pod.Status.Phase == corev1.PodSucceeded || f.mayReplace(n.name):
		plan.failed = append(plan.failed, pod)
		plan.drop(pod)
	}
}

// keepTwo lets the oldest pod of the update revision and the oldest of another one stay on a node
// with a surge, until the new one is available or the old one does not serve. It returns the one
// that counts: the old one as long as it is there.
func (f placeFacts) keepTwo(plan *placePlan, living []*corev1.Pod) *corev1.Pod {
	var updated, old *corev1.Pod
	for _, pod := range living {
		switch isUpdated := inplace.RevisionOf(pod) == f.mark; {
		case isUpdated && updated == nil:
			updated = pod
		case !isUpdated && old == nil:
			old = pod
		default:
			plan.drop(pod)
		}
	}
	switch {
	case old == nil:
		return updated
	case updated == nil:
		return old
	case !podutils.IsPodReady(old), workload.IsHealthy(updated, f.lifecycle, f.minReadySeconds, f.now):
		plan.drop(old)
		return updated
	default:
		plan.awaited = append(plan.awaited, updated)
		return old
	}
}

// compareAge orders pods that are bound to a node before others, and older ones before newer.
func compareAge(a, b *corev1.Pod) int {
	return cmp.Or(
		workload.CompareBools(a.Spec.NodeName == "", b.Spec.NodeName == ""),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}
