// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/executor"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
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

// expire ends a hold that made no progress for too long. If that is still to come, it asks
// for another look then.
func (r *Reconciler) expire(ctx context.Context, s *scope) error {
	if s.ending != nil || !s.mayExpire() {
		return nil
	}
	deadline := s.spec.progressDeadline + s.stopTime()
	if left := s.progressTime(statusOf(s.object)).Add(deadline).Sub(s.now); left > 0 {
		s.requeue.Within(left)
		return nil
	}
	s.ending = &ending{
		corev1.EventTypeWarning, reasonHoldTimedOut,
		fmt.Sprintf("no pod was updated in place for %s%s; Kubernetes recreates the pods of %s", deadline, s.worst(), s.owner),
	}
	return r.release(ctx, s)
}

// mayExpire reports whether the hold ends for want of progress: Kubernetes can bring the
// pods where they are to be, and nobody has asked to wait.
func (s *scope) mayExpire() bool {
	switch {
	case s.options.policy != appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, s.options.paused, s.spec.progressDeadline == 0:
		return false
	case s.failure != nil:
		// What the API server refuses, it refuses the next time, too.
		return executor.IsRefusal(s.failure)
	case !s.planned, s.isBack(), s.keeps() > 0 && !s.hasWork():
		return false
	default:
		return !s.failsAtTarget()
	}
}

// failsAtTarget reports whether nothing but pods of the new revision keeps the others from
// being updated. New pods of it would fail, too.
func (s *scope) failsAtTarget() bool {
	fails := false
	isAtTarget := func(pod *corev1.Pod) bool { return podRevision(pod) == s.target.Name }
	for i, pod := range s.plan.Pods {
		fails = fails || isAtTarget(pod.Pod) && !s.isOfOther(i) && !pod.Available
	}
	for _, blocker := range s.plan.Blockers {
		if !isAtTarget(blocker.Pod) && !waitsForOthers(blocker) {
			return false
		}
	}
	return fails
}

// waitsForOthers reports whether a pod waits for nothing but its turn.
func waitsForOthers(blocker inplace.Blocker) bool {
	switch blocker.Reason {
	case inplace.ReasonBudget, inplace.ReasonUpdateOrder, inplace.ReasonMaxConcurrent:
		return true
	default:
		return false
	}
}

// stopTime is how long a pod may take between being drained and being started again, which
// is no progress: Kubernetes starts its new pods before the old ones have stopped.
func (s *scope) stopTime() time.Duration {
	seconds := ptr.Deref(s.spec.template.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	return time.Duration(seconds+int64(s.options.strategy.GracePeriodSeconds)) * time.Second
}

// worst says what holds the update up first of all.
func (s *scope) worst() string {
	switch {
	case s.failure != nil:
		return ": " + s.failure.Error()
	case len(s.plan.Blockers) == 0:
		return ""
	default:
		first := s.plan.Blockers[0]
		return fmt.Sprintf(": pod %s: %s", first.Pod.Name, first.Message)
	}
}

// progressTime returns since when there was no progress, by what was reported before. A
// failure by which nothing can be planned counts from when it was reported first.
func (s *scope) progressTime(before native.Status) metav1.Time {
	now := metav1.NewTime(s.now).Rfc3339Copy()
	switch {
	case before.ProgressTime.IsZero(), isAtRest(before.State):
		return now
	case !s.planned:
		if state, message := s.failed(); before.State != state || before.Message != message {
			return now
		}
		return before.ProgressTime
	}
	if updated, available := s.progress(); before.Revision != s.target.Name || updated > before.Updated || available > before.Available {
		return now
	}
	return before.ProgressTime
}

// progress counts the pods that are updated, and those that are available.
func (s *scope) progress() (updated, available int32) {
	for i, pod := range s.plan.Pods {
		if pod.Available {
			available++
		}
		if pod.Updated && !s.isOfOther(i) {
			updated++
		}
	}
	return updated, available
}

// failed is what is reported of a failure.
func (s *scope) failed() (native.State, string) {
	return native.Stalled, workloads.Summary([]error{s.failure})
}
