// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What a spec promises, read from its fields as the pages say it. Laws use these and
// not the methods of the API types, which the operator uses: a law that calls them
// agrees with their mistakes.

// pods returns how many pods a number or a percentage of replicas is.
func pods(value *intstr.IntOrString, absent string, replicas int, up bool) int {
	text := absent
	if value != nil {
		text = value.String()
	}
	digits, isPercentage := strings.CutSuffix(text, "%")
	number, err := strconv.Atoi(digits)
	switch {
	case err != nil:
		panic(fmt.Sprintf("no run asks for %q pods", text))
	case !isPercentage:
		return number
	case up:
		return (number*replicas + 99) / 100
	default:
		return number * replicas / 100
	}
}

// replicasOf returns how many pods a set is to have: 1 if it does not say.
func replicasOf(set *appsv1beta1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// ordinalsOf returns the ordinals that the pods of a set have, the lowest first.
// docs/statefulset.md: ordinals.start is "the first ordinal"; reserveOrdinals are
// "ordinals that no pod may have", and "the set goes on to a higher one".
func ordinalsOf(set *appsv1beta1.StatefulSet) []int {
	reserved, next := map[int]bool{}, 0
	for _, entry := range set.Spec.ReserveOrdinals {
		first, last, isRange := strings.Cut(entry.String(), "-")
		if !isRange {
			last = first
		}
		from, _ := strconv.Atoi(first)
		to, _ := strconv.Atoi(last)
		for ordinal := from; ordinal <= to; ordinal++ {
			reserved[ordinal] = true
		}
	}
	if set.Spec.Ordinals != nil {
		next = int(set.Spec.Ordinals.Start)
	}
	var ordinals []int
	for ; len(ordinals) < replicasOf(set); next++ {
		if !reserved[next] {
			ordinals = append(ordinals, next)
		}
	}
	return ordinals
}

// podsOf returns the names of the pods that a StatefulSet is to have, the lowest
// ordinal first.
func podsOf(set *appsv1beta1.StatefulSet) []string {
	var names []string
	for _, ordinal := range ordinalsOf(set) {
		names = append(names, fmt.Sprintf("%s-%d", setName, ordinal))
	}
	return names
}

// partitionOf returns how many pods stay at the old revision: "replicas − partition
// pods are updated".
func partitionOf(set *appsv1beta1.StatefulSet) int {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.Partition != nil {
		return min(int(*rolling.Partition), replicasOf(set))
	}
	return 0
}

// keptByPartition returns the pods that the partition of a StatefulSet keeps at the old
// revision: all but the replicas − partition pods with the highest ordinals. An
// ordinal that is reserved has no pod, and counts for nothing.
func keptByPartition(set *appsv1beta1.StatefulSet) []string {
	return podsOf(set)[:partitionOf(set)]
}

// budgetOfSet returns how many pods of a StatefulSet may be out of service. "A
// percentage is rounded down, at least to 1"; "anything but 1 needs
// podManagementPolicy: Parallel".
func budgetOfSet(set *appsv1beta1.StatefulSet) int {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	if set.Spec.PodManagementPolicy != appsv1.ParallelPodManagement || rolling == nil {
		return 1
	}
	return max(pods(rolling.MaxUnavailable, "1", replicasOf(set), false), 1)
}

// readyFor returns how long a pod must be ready to count as available: "how long a
// pod has to be ready", which is of the rolling update.
func readyFor(set *appsv1beta1.StatefulSet) time.Duration {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil && rolling.MinReadySeconds != nil {
		return time.Duration(*rolling.MinReadySeconds) * time.Second
	}
	return 0
}

// rests reports whether the user lets no pod start its update: "no pod starts its
// update" while it is paused; with OnDelete, "a pod gets the new revision when
// a user deletes it".
func rests(set *appsv1beta1.StatefulSet) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	return set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType || rolling != nil && rolling.Paused
}

// respectsBudgets reports whether updates are to wait for PodDisruptionBudgets.
func respectsBudgets(set *appsv1beta1.StatefulSet) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	return rolling != nil && rolling.InPlaceUpdateStrategy != nil &&
		rolling.InPlaceUpdateStrategy.PodDisruptionBudget == appsv1beta1.RespectPodDisruptionBudget
}

// hooksOf returns the lifecycle hooks of a set; nil if it has none.
func hooksOf(set *appsv1beta1.StatefulSet) *appsv1beta1.Lifecycle {
	hooks := set.Spec.Lifecycle
	if hooks == nil || hooks.PreDelete == nil && hooks.InPlaceUpdate == nil && hooks.PreNormal == nil {
		return nil
	}
	return hooks
}

// followsTemplates reports whether claims are to follow their templates:
// volumeClaimUpdateStrategy is OnDelete unless it says another.
func followsTemplates(strategy appsv1beta1.VolumeClaimUpdateStrategy) bool {
	return strategy.Type == appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType ||
		strategy.Type == appsv1beta1.RecreateVolumeClaimUpdateStrategyType
}

// atATime returns how many pods may be resized, or have their claims changed, at a
// time: a quarter if it is not said, rounded down, at least 1.
func atATime(maxConcurrent *intstr.IntOrString, replicas int) int {
	return max(pods(maxConcurrent, "25%", replicas, false), 1)
}

// clonePromise is what a CloneSet promises of its numbers. docs/cloneset.md has the
// table: partition is rounded up, "but below 100% at least one pod is updated";
// maxUnavailable is 20% if absent, "rounded up without surge, down with surge; at
// least 1 without surge"; maxSurge is rounded up.
type clonePromise struct {
	replicas, partition, maxUnavailable, maxSurge int
	// keepsSome: the partition keeps pods of a set that is large enough.
	keepsSome bool
}

// promiseOf returns what a CloneSet promises. Runs write its update strategy nested.
func promiseOf(set *appsv1beta1.CloneSet) clonePromise {
	p := clonePromise{replicas: 1}
	if set.Spec.Replicas != nil {
		p.replicas = int(*set.Spec.Replicas)
	}
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	p.maxSurge = pods(rolling.MaxSurge, "0", p.replicas, true)
	p.maxUnavailable = pods(rolling.MaxUnavailable, "20%", p.replicas, p.maxSurge == 0)
	if p.maxSurge == 0 {
		p.maxUnavailable = max(p.maxUnavailable, 1)
	}
	p.keepsSome = pods(rolling.Partition, "0", 100, true) > 0
	p.partition = min(pods(rolling.Partition, "0", p.replicas, true), p.replicas)
	if value := rolling.Partition; value != nil && value.Type == intstr.String && value.StrVal != "100%" {
		p.partition = max(min(p.partition, p.replicas-1), 0)
	}
	return p
}

// checkFinished asserts that a rollout is not taken for finished while a partition keeps pods
// back, or by having none: the revision would be forgotten at which kept pods are made again.
func (l *law) checkFinished(w write) {
	set, seen := l.world.set(), l.seenSet
	if set == nil || seen == nil {
		return
	}
	before, after := seen.Status.CurrentRevision, set.Status.CurrentRevision
	if before == after || l.imagesOf(before) == nil {
		return
	}
	keeps := l.seenClones != nil && promiseOf(l.seenClones).keepsSome
	if rolling := seen.Spec.UpdateStrategy.RollingUpdate; l.seenClones == nil && rolling != nil {
		// The first ordinals that it keeps are there, and updated, or it keeps others.
		partition := int(ptr.Deref(rolling.Partition, 0))
		keeps = partition > replicasOf(seen) || partition > 0 && l.world.settings.unordered
	}
	if l.daemons != nil {
		l.daemons.checkFinished(w, after)
		return
	}
	if keeps || replicasOf(seen) == 0 {
		l.world.violate("%s takes %s for finished, with %d replicas, and a partition that keeps some: %t", w.words, after, replicasOf(seen), keeps)
	}
}
