// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// patient is how long a user waits before they look why a rollout is not done.
const patient = 10 * time.Minute

// unblock does what Kubernetes leaves to its users where it rolls a StatefulSet itself
// and does not come to an end, with and without the operator.
//
// In order, it waits for ever for a broken pod of the revision before: that is to be
// deleted. Of a strategy without rollingUpdate, it makes that pod at the revision before
// again; without an order, Kubernetes 1.37 goes on to make and delete it. Then the
// strategy is to be written in full.
func (n *nativeWorkload) unblock() {
	if _, ok := n.object().(*appsv1.StatefulSet); !ok {
		return
	}
	isQuiet := n.world.settleOr(patient)
	set, ok := n.object().(*appsv1.StatefulSet)
	if !ok || isHeld(set) || n.world.failure != nil {
		return
	}
	broken := n.brokenBefore(set)
	if n.wish.bare && (len(broken) > 0 || !isQuiet) {
		n.wish.bare = false
		n.world.say("user: writes the strategy in full")
		n.ask(false)
	}
	if !n.wish.ordered {
		return
	}
	for _, pod := range broken {
		n.world.say("user: deletes %s, which is broken", pod.Name)
		_ = n.world.server.delete(objectKey{"Pod", pod.Name}, nil) // it is there
	}
}

// brokenBefore returns the pods of other revisions than the newest whose containers are
// not ready. One that only its gate keeps out is not broken.
func (n *nativeWorkload) brokenBefore(set *appsv1.StatefulSet) []*corev1.Pod {
	var found []*corev1.Pod
	for _, pod := range n.pods() {
		if revisionOf(pod) != set.Status.UpdateRevision && !conditionIs(pod, corev1.ContainersReady, corev1.ConditionTrue) {
			found = append(found, pod)
		}
	}
	return found
}
