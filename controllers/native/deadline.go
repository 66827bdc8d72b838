// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// No hold lasts for ever that the user has not asked for: one without progress ends, and
// Kubernetes does what it would have done without the hold.

// defaultProgressDeadline is the progress deadline of a kind whose spec has none: the one
// that the API server gives to Deployments.
const defaultProgressDeadline = 600 * time.Second

// progressDeadlineOf returns the progress deadline of a kind whose spec has none.
func progressDeadlineOf(minReadySeconds int32) time.Duration {
	return defaultProgressDeadline + time.Duration(minReadySeconds)*time.Second
}

// deadline is how long there may be no progress; 0 for ever. Kubernetes starts its new pods
// before the old ones have stopped. Here a pod is drained and stops before it starts again.
func (s *scope) deadline() time.Duration {
	if s.spec.progressDeadline == 0 {
		return 0
	}
	seconds := ptr.Deref(s.spec.template.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return s.spec.progressDeadline + time.Duration(seconds+int64(s.options.strategy.GracePeriodSeconds))*time.Second
}

// patience remembers since when holds make no progress. A manager that starts counts from
// zero: the time in which no manager ran is not held against a workload.
type patience struct {
	mu      sync.Mutex
	waiting map[types.NamespacedName]stagnation
}

// stagnation is a time without progress.
type stagnation struct {
	uid types.UID
	// target is the revision of the pods, empty while it is not known; reached is how many
	// of them ran it and were available at most.
	target  string
	reached int
	since   time.Time
}

// since returns since when there is no progress, by what there is now.
func (p *patience) since(key types.NamespacedName, now stagnation) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.waiting[key]
	if known && before.uid == now.uid && before.target == now.target && now.reached <= before.reached {
		return before.since
	}
	if p.waiting == nil {
		p.waiting = map[types.NamespacedName]stagnation{}
	}
	p.waiting[key] = now
	return now.since
}

// forget forgets a workload that may take its time.
func (p *patience) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waiting, key)
}

// expire ends a hold that made no progress for too long. If that is still to come, it asks
// for another look then.
func (r *Reconciler) expire(ctx context.Context, s *scope) error {
	key := client.ObjectKeyFromObject(s.object)
	if s.ending != nil || !s.mayExpire() {
		r.patience.forget(key)
		return nil
	}
	since := r.patience.since(key, s.stagnation())
	if left := since.Add(s.deadline()).Sub(s.Now); left > 0 {
		s.Requeue.Within(left)
		return nil
	}
	s.ending = &ending{
		corev1.EventTypeWarning, reasonHoldTimedOut,
		fmt.Sprintf("no progress for %s%s; Kubernetes goes on with %s, and may recreate its pods", s.deadline(), s.worst(), s.Owner),
	}
	if r.staysHeld(ctx, s) {
		s.nameKept()
		return nil
	}
	s.failure = nil // it is over, and told in the event
	return r.release(ctx, s)
}

// stagnation returns what there is, as the beginning of a time without progress.
func (s *scope) stagnation() stagnation {
	found := stagnation{uid: s.object.GetUID(), since: s.Now}
	if !s.Planned {
		return found
	}
	found.target = s.target.Name
	for i, pod := range s.Plan.Pods {
		if pod.Updated && pod.Available && !s.isOfOther(i) {
			found.reached++
		}
	}
	return found
}

// mayExpire reports whether the hold ends if it makes no progress: something but the new
// revision is in its way, Kubernetes can go on without it, and the user has not asked to wait.
func (s *scope) mayExpire() bool {
	isPlanned := s.Planned && s.failure == nil
	switch {
	case s.options.policy != appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, s.options.paused, s.deadline() == 0:
		return false
	case s.goesBack() && (!s.Planned || !s.isDone()):
		return false // Kubernetes would not bring its pods back
	case s.Planned && s.waitsForImages():
		return false // Kubernetes would take them out of service without their images
	case s.Planned && (s.keeps() > 0 || s.isKeptBack() && s.isWhole()):
		return false // Kubernetes would update those, too
	case isPlanned && len(s.Plan.Blockers) == 0:
		return len(s.Plan.Moves) == 0
	case isPlanned:
		return slices.ContainsFunc(s.Plan.Blockers, s.isInTheWay)
	default:
		return s.failure != nil
	}
}

// goesBack reports whether the ReplicaSet of the pods has the template already that they are
// to have, and did not get it here.
func (s *scope) goesBack() bool {
	return s.keeper != nil && s.keeper.isOf(s.spec.template) && !s.keeper.isPromoted()
}

// isInTheWay reports whether a pod is kept from its update by what would not keep Kubernetes
// from recreating it, and what the user has not asked for. A pod that was updated in place and
// does not become ready is no such thing: new ones would not, either.
func (s *scope) isInTheWay(b inplace.Blocker) bool {
	policy := ptr.Deref(s.options.strategy.Resize, appsv1beta1.ResizePolicy{})
	switch b.Reason {
	case inplace.ReasonBudget, inplace.ReasonUpdateOrder, inplace.ReasonMaxConcurrent, inplace.ReasonMinReadySeconds:
		return false // it waits for others, or for its time
	case inplace.ReasonDisruptionBudget:
		return false
	case inplace.ReasonImagePull, inplace.ReasonImageNotPullable:
		return s.mustTellOfImages() // else it goes on without by itself, or the user has asked to wait
	case inplace.ReasonNewPod:
		return true // only Kubernetes' own deadline tells its clients that the new pod does not come up
	case inplace.ReasonResizeDeferred:
		return policy.OnDeferred == ""
	case inplace.ReasonResizeInfeasible:
		return policy.OnInfeasible == ""
	case inplace.ReasonResizeError:
		return policy.OnError == ""
	default:
		return inplace.RevisionOf(b.Pod) != s.target.Name && !inplace.IsLost(b.Pod, s.Now)
	}
}

// worst says what holds the update up first of all.
func (s *scope) worst() string {
	if s.failure != nil {
		return ": " + s.failure.Error()
	}
	if i := slices.IndexFunc(s.Plan.Blockers, s.isInTheWay); i >= 0 {
		return fmt.Sprintf(": pod %s: %s", s.Plan.Blockers[i].Pod.Name, s.Plan.Blockers[i].Message)
	}
	return ""
}
