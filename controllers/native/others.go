// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"

	"github.com/insitu-dev/insitu/inplace"
)

// unfinishedTime is how long a pod of an unfinished rollout may take to become ready.
const unfinishedTime = time.Minute

// blockedByOthers returns the end of a hold in which nothing moves, since pods of other
// ReplicaSets take all the room of maxUnavailable: they are of a rollout that was never
// finished, and only Kubernetes takes them away, when it goes on. It returns nil if
// there is no such thing.
func (s *scope) blockedByOthers() *ending {
	stuck := s.stuckOther()
	if stuck == "" || len(s.Plan.Moves) > 0 || !s.waitsForRoom() {
		return nil
	}
	return recreated(s, "pod "+stuck+" of an unfinished rollout is not ready, and takes the room of maxUnavailable")
}

// blockedByMissing returns the end of a hold in which nothing moves, since pods that
// cannot be made take all the room of maxUnavailable: those come from the ReplicaSet of
// the next template only. It returns nil if there is no such thing. The failure may pass
// within a while, so it asks for another look then.
func (s *scope) blockedByMissing() *ending {
	if s.keeper == nil || len(s.Plan.Moves) > 0 || !s.waitsForRoom() {
		return nil
	}
	failure := s.keeper.failure()
	if failure == nil {
		return nil
	}
	if left := failure.LastTransitionTime.Add(unfinishedTime).Sub(s.Now); left > 0 {
		s.Requeue.Within(left)
		return nil
	}
	return recreated(s, "ReplicaSet "+s.keeper.Name+" cannot make its pods, and what is missing takes the room of maxUnavailable: "+failure.Message)
}

// stuckOther returns the name of a pod of another ReplicaSet that does not become
// ready. If one may have to be called that later, it asks for another look then.
func (s *scope) stuckOther() string {
	for i, facts := range s.pods {
		isNew := s.surge != nil && metav1.IsControlledBy(facts.Pod, s.surge)
		if !s.isOfOther(i) || isNew || podutils.IsPodReady(facts.Pod) {
			continue
		}
		if inplace.IsBroken(facts.Pod) {
			return facts.Pod.Name
		}
		left := notReadySince(facts.Pod).Add(unfinishedTime).Sub(s.Now)
		if left <= 0 {
			return facts.Pod.Name
		}
		s.Requeue.Within(left)
	}
	return ""
}

// notReadySince returns since when a pod has not been ready.
func notReadySince(pod *corev1.Pod) time.Time {
	i := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	if i < 0 {
		return pod.CreationTimestamp.Time
	}
	return pod.Status.Conditions[i].LastTransitionTime.Time
}

// waitsForRoom reports whether there are pods to be updated, and all of them wait for
// maxUnavailable.
func (s *scope) waitsForRoom() bool {
	waiting := 0
	for i, pod := range s.Plan.Pods {
		if !s.pods[i].Held && !pod.Updated {
			waiting++
		}
	}
	for _, blocker := range s.Plan.Blockers {
		if blocker.Reason == inplace.ReasonBudget {
			waiting--
		}
	}
	return waiting == 0 && s.hasWork()
}
