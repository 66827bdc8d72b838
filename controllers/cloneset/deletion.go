// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/controllers/workload"
)

// inDeletionOrder returns the members in the order in which they go when there
// are too many: first those that are on their way out, then those that a user
// asks for, then by revision and by what is lost with them.
func (f scaleFacts) inDeletionOrder() []*member {
	lossOf := losses(f.members)
	ordered := slices.SortedFunc(slices.Values(f.members), func(a, b *member) int {
		return cmp.Or(workload.CompareBools(b.preparing, a.preparing), workload.CompareBools(b.asked, a.asked), lossOf[a.Name].compare(lossOf[b.Name]))
	})
	wished := 0
	for wished < len(ordered) && (ordered[wished].preparing || ordered[wished].asked) {
		wished++
	}
	f.sortByRevision(ordered[wished:])
	return ordered
}

// sortByRevision brings those first of which there are too many at their
// revision, and leaves equal ones in their order.
//
// A scale-down deletes old pods before updated ones, but for those that the partition
// keeps. The same holds with OnDelete. While the update is paused, it prefers neither.
func (f scaleFacts) sortByRevision(pods []*member) {
	isOld := func(m *member) bool { return m.turn != workload.Updated }
	spare := -f.partition
	for _, m := range pods {
		if isOld(m) {
			spare++
		}
	}
	group := map[string]int{}
	for _, m := range pods {
		switch {
		case !isOld(m):
			group[m.Name] = 1
		case spare > 0:
			spare--
			if f.paused {
				group[m.Name] = 1
			}
		default:
			group[m.Name] = 2
		}
	}
	slices.SortStableFunc(pods, func(a, b *member) int { return group[a.Name] - group[b.Name] })
}

// loss says what is lost with a pod, the most important first. Of two pods that
// are alike, the newer one is lost sooner.
type loss struct {
	rank      rank
	available bool
	cost      int64
	// neighbors is how many pods of the set would be left on its node.
	neighbors int
	pod       *corev1.Pod
}

func (l loss) compare(other loss) int {
	return cmp.Or(l.compareValue(other), cmp.Compare(other.neighbors, l.neighbors), l.compareAge(other))
}

// compareValue compares what a pod is worth wherever it runs.
func (l loss) compareValue(other loss) int {
	return cmp.Or(cmp.Compare(l.rank, other.rank), workload.CompareBools(l.available, other.available), cmp.Compare(l.cost, other.cost))
}

func (l loss) compareAge(other loss) int {
	return cmp.Or(
		readySince(other.pod).Compare(readySince(l.pod)),
		cmp.Compare(restartsOf(other.pod), restartsOf(l.pod)),
		other.pod.CreationTimestamp.Compare(l.pod.CreationTimestamp.Time),
		cmp.Compare(l.pod.Name, other.pod.Name),
	)
}

// losses returns what is lost with each pod, by name. Of the pods on one node, the
// first to go has all the others as neighbors, the last has none: so nodes with
// many pods get down to the others one pod after the other.
func losses(pods []*member) map[string]loss {
	all := make(map[string]loss, len(pods))
	onNode := map[string][]loss{}
	for _, m := range pods {
		l := loss{rank: rankOf(m.Pod), available: m.available, cost: deletionCost(m.Pod), pod: m.Pod}
		all[m.Name] = l
		if m.Spec.NodeName != "" {
			onNode[m.Spec.NodeName] = append(onNode[m.Spec.NodeName], l)
		}
	}
	for _, neighbors := range onNode {
		slices.SortFunc(neighbors, func(a, b loss) int { return cmp.Or(a.compareValue(b), a.compareAge(b)) })
		for i, l := range neighbors {
			l.neighbors = len(neighbors) - 1 - i
			all[l.pod.Name] = l
		}
	}
	return all
}

// deletionCost is what the annotation of a pod says; one that is not a number
// counts as none.
func deletionCost(pod *corev1.Pod) int64 {
	cost, err := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return cost
}

// readySince returns when a pod became ready; the zero time if it is not, for
// which age says nothing.
func readySince(pod *corev1.Pod) time.Time {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// restartsOf returns the restarts of the container that was restarted most.
func restartsOf(pod *corev1.Pod) int32 {
	var most int32
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		most = max(most, status.RestartCount)
	}
	return most
}
