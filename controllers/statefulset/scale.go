// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
)

// scaleFacts is what the order of creation and deletion depends on.
type scaleFacts struct {
	// ordinals are the wanted ordinals, ascending.
	ordinals []int
	// members and condemned are sorted by ordinal, ascending.
	members, condemned []*member
	// ordered is true for podManagementPolicy OrderedReady.
	ordered bool
	// limit is how many pods may be unavailable by creations and deletions;
	// negative for no limit.
	limit int
}

// scalePlan is what to create and delete now.
type scalePlan struct {
	// create are the ordinals of pods to create, in this order.
	create []int
	// remove are the pods to delete, in this order.
	remove []*member
}

// planScale decides which pods are created and deleted now. A pod that has ended
// is deleted, to be created again.
//
// Source of the order: StatefulSet deployment and scaling guarantees.
func planScale(f scaleFacts) scalePlan {
	if f.ordered {
		return planOrdered(f)
	}
	return planParallel(f)
}

// planOrdered creates one pod at a time, each after those before it are ready,
// and deletes one at a time, the highest first, while all that stay are ready.
func planOrdered(f scaleFacts) scalePlan {
	pods := byOrdinal(f.members)
	for _, ordinal := range f.ordinals {
		m := pods[ordinal]
		switch {
		case m == nil:
			return scalePlan{create: []int{ordinal}}
		case hasEnded(m.Pod):
			return scalePlan{remove: []*member{m}}
		case !m.healthy:
			return scalePlan{}
		}
	}
	if len(f.condemned) == 0 {
		return scalePlan{}
	}
	last := f.condemned[len(f.condemned)-1]
	if last.DeletionTimestamp != nil {
		return scalePlan{}
	}
	return scalePlan{remove: []*member{last}}
}

// planParallel creates and deletes all at once, as far as the limit allows.
func planParallel(f scaleFacts) scalePlan {
	plan := scalePlan{}
	pods := byOrdinal(f.members)
	busy := 0
	for _, m := range slices.Concat(f.members, f.condemned) {
		if !m.healthy {
			busy++
		}
		if hasEnded(m.Pod) {
			plan.remove = append(plan.remove, m)
		}
	}
	mayDisturb := func() bool {
		busy++
		return f.limit < 0 || busy <= f.limit
	}
	for _, ordinal := range f.ordinals {
		if pods[ordinal] == nil && mayDisturb() {
			plan.create = append(plan.create, ordinal)
		}
	}
	for _, m := range slices.Backward(f.condemned) {
		if m.DeletionTimestamp == nil && !hasEnded(m.Pod) && (!m.healthy || mayDisturb()) {
			plan.remove = append(plan.remove, m)
		}
	}
	return plan
}

func byOrdinal(members []*member) map[int]*member {
	pods := make(map[int]*member, len(members))
	for _, m := range members {
		pods[m.ordinal] = m
	}
	return pods
}

// isHealthy reports whether a pod runs, has been ready for minReadySeconds, and
// stays.
func isHealthy(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	return pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning &&
		podutils.IsPodAvailable(pod, minReadySeconds, metav1.NewTime(now))
}

// hasEnded reports whether a pod will never run again and is still there: it was
// evicted, for example.
func hasEnded(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded)
}

// scale creates and deletes the pods whose turn it is. What fails with one pod
// does not keep the others from being updated.
func (r *Reconciler) scale(ctx context.Context, s *scope) error {
	limit := -1
	if limited, ok := s.set.GetScaleMaxUnavailable(); ok {
		limit = int(limited)
	}
	plan := planScale(scaleFacts{
		ordinals: s.ordinals, members: s.members, condemned: s.condemned, limit: limit,
		ordered: s.set.GetPodManagementPolicy() == appsv1.OrderedReadyPodManagement,
	})
	r.createPods(ctx, s, plan.create)
	for _, m := range s.members {
		if m.Status.Phase == corev1.PodPending && m.DeletionTimestamp == nil {
			s.scaleErrs = appendError(s.scaleErrs, r.ensureClaimsOf(ctx, s, m))
		}
	}
	for _, m := range plan.remove {
		s.scaleErrs = appendError(s.scaleErrs, r.deletePod(ctx, s, m.Pod))
	}
	return nil
}

// createPods creates pods, a batch at a time, until too many have failed. The
// events of the first pods cause the next reconciliation, which goes on.
func (r *Reconciler) createPods(ctx context.Context, s *scope, ordinals []int) {
	for batch := range slices.Chunk(ordinals[:min(len(ordinals), maxCreations)], r.parallelWrites) {
		errs := make([]error, len(batch))
		workqueue.ParallelizeUntil(ctx, r.parallelWrites, len(batch), func(i int) {
			errs[i] = r.createPod(ctx, s, batch[i])
		})
		for _, err := range errs {
			s.scaleErrs = appendError(s.scaleErrs, err)
		}
		if len(s.scaleErrs) >= maxFailures {
			return
		}
	}
}

// ensureClaimsOf makes the claims again that a pod waits for: one that was
// deleted would keep its pod pending for ever.
func (r *Reconciler) ensureClaimsOf(ctx context.Context, s *scope, m *member) error {
	revision := s.history.Get(m.Labels[appsv1beta1.ControllerRevisionHashLabel])
	if revision == nil {
		revision = s.update
	}
	return r.ensureClaims(ctx, claimsOf(m.Pod, newClaims(s.set, revision, m.ordinal)))
}

// maxCreations is how many pods are created in one reconciliation.
const maxCreations = 512

// maxFailures is how many pods may fail to be created before the others are left
// for the next try: what refuses three refuses three hundred.
const maxFailures = 3

func appendError(errs []error, err error) []error {
	if err == nil {
		return errs
	}
	return append(errs, err)
}

// createPod creates the pod with an ordinal and, before it, its claims.
func (r *Reconciler) createPod(ctx context.Context, s *scope, ordinal int) error {
	revision := s.revisionFor(ordinal)
	pod, err := newPod(s.set, revision, ordinal)
	if err != nil {
		return err
	}
	err = r.ensureClaims(ctx, newClaims(s.set, revision, ordinal))
	if err == nil {
		err = r.client.Create(ctx, pod)
	}
	if err != nil {
		r.recorder.Eventf(s.set, nil, corev1.EventTypeWarning, appsv1beta1.ReasonFailedCreate, actionCreate,
			"create pod %s: %v", pod.Name, err)
		return fmt.Errorf("create pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.recorder.Eventf(s.set, pod, corev1.EventTypeNormal, appsv1beta1.ReasonSuccessfulCreate, actionCreate,
		"created pod %s at revision %s", pod.Name, pod.Labels[appsv1beta1.ControllerRevisionHashLabel])
	return nil
}

// deletePod deletes a pod. One that changed meanwhile is looked at again first.
func (r *Reconciler) deletePod(ctx context.Context, s *scope, pod *corev1.Pod) error {
	err := executor.DeletePod(ctx, r.client, pod)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case apierrors.IsConflict(err):
		s.requeue(conflictDelay)
		return nil
	case err != nil:
		r.recorder.Eventf(s.set, pod, corev1.EventTypeWarning, appsv1beta1.ReasonFailedDelete, actionDelete,
			"delete pod %s: %v", pod.Name, err)
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	r.recorder.Eventf(s.set, pod, corev1.EventTypeNormal, appsv1beta1.ReasonSuccessfulDelete, actionDelete, "deleted pod %s", pod.Name)
	return nil
}

// Actions of events.
const (
	actionCreate = "Create"
	actionDelete = "Delete"
	actionUpdate = "Update"
)
