// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// budget is a PodDisruptionBudget of all pods of the set, with the controller that
// counts them, later, and the eviction API that asks it.
type budget struct {
	world *World
	// minAvailable is how many pods are to be healthy; negative without a budget.
	minAvailable int
	// seen are the pods that were healthy in the last seconds, the earliest first.
	seen []sets.Set[types.UID]
	// evicted are the pods whose eviction was allowed, and that are still there.
	evicted sets.Set[types.UID]
}

func newBudget(w *World) *budget {
	b := &budget{world: w, minAvailable: -1, evicted: sets.New[types.UID]()}
	if w.settings.respects {
		b.minAvailable = max(w.settings.replicas-1-w.settings.budgetSlack, 0)
	}
	return b
}

// step is one second: the controller gets to see what was a while ago.
func (b *budget) step() {
	healthy := sets.New[types.UID]()
	for _, pod := range all[*corev1.Pod](b.world.server) {
		if pod.Labels["app"] == setName && isHealthy(pod) {
			healthy.Insert(pod.UID)
		}
	}
	b.seen = append(b.seen, healthy)
	if lag := b.world.settings.budgetLag; len(b.seen) > lag+1 {
		b.seen = b.seen[1:]
	}
}

// isHealthy reports whether a pod counts for its budget.
func isHealthy(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && conditionIs(pod, corev1.PodReady, corev1.ConditionTrue)
}

// counted are the pods that the controller has counted as healthy.
func (b *budget) counted() sets.Set[types.UID] {
	if len(b.seen) == 0 {
		return nil
	}
	return b.seen[0].Difference(b.evicted)
}

// evict deletes a pod if the budget allows it.
func (b *budget) evict(pod string, preconditions *metav1.Preconditions, dryRun bool) error {
	key := objectKey{"Pod", pod}
	held, ok := get[*corev1.Pod](b.world.server, pod)
	if !ok {
		return notFound(key)
	}
	if err := checkPreconditions(held, key, preconditions); err != nil {
		return err
	}
	spare := b.counted().Len() - b.minAvailable
	if spare < 0 || spare == 0 && isHealthy(held) {
		return apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	}
	if dryRun {
		return nil
	}
	b.evicted.Insert(held.UID)
	return b.world.server.delete(key, preconditions)
}
