// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
)

// maxBlockers is how many blockers fit into a status.
const maxBlockers = 10

// patchStatus reports what the reconciliation found and did, in one patch, if
// anything differs from what is reported already. failure is the error that
// ended the reconciliation, if any.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope, failure error) error {
	before := s.set.DeepCopy()
	status := &s.set.Status
	if s.planned {
		if err := r.computeCounts(ctx, s, status); err != nil {
			return err
		}
		status.Blockers = computeBlockers(s, before.Status.Blockers)
		if failure == nil {
			status.ObservedGeneration = s.set.Generation
		}
	}
	setConditions(s, failure)
	if apiequality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	// With the resource version, a set of the same name that was made meanwhile
	// does not get the status of the one before.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, s.set, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status of StatefulSet %s/%s: %w", before.Namespace, before.Name, err)
	}
	r.reportStuck(s, before.Status.Blockers)
	return nil
}

// reportStuck records an event for every pod that was not reported as stuck
// before, in the words of the blocker.
func (r *Reconciler) reportStuck(s *scope, before []appsv1beta1.Blocker) {
	for _, b := range s.plan.Blockers[:min(len(s.plan.Blockers), maxBlockers)] {
		known := slices.ContainsFunc(before, func(old appsv1beta1.Blocker) bool {
			return old.Pod == b.Pod.Name && old.Reason == b.Reason && old.Step == string(inplace.Stuck)
		})
		told := b.Reason == inplace.ReasonAdmissionDenied // by the executor, once for all pods that it holds for
		if b.State == inplace.Stuck && !known && !told {
			r.recorder.Eventf(s.set, b.Pod, corev1.EventTypeWarning, b.Reason, actionUpdate, "pod %s: %s", b.Pod.Name, b.Message)
		}
	}
}

// computeCounts fills in what is counted, as it was observed at the start of the
// reconciliation. A pod that is between two revisions counts as neither.
func (r *Reconciler) computeCounts(ctx context.Context, s *scope, status *appsv1beta1.StatefulSetStatus) error {
	selector, err := metav1.LabelSelectorAsSelector(s.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read spec.selector: %w", err)
	}
	claims, err := r.claimStatus(ctx, s)
	if err != nil {
		return err
	}
	c := s.counts
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.replicas, c.ready, c.available
	status.CurrentReplicas, status.UpdatedReplicas = c.current, c.updated
	status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.updatedReady, c.updatedAvailable
	status.InPlaceUpdated, status.Recreated = c.inPlace, c.updated-c.inPlace
	status.UpdateRevision, status.CurrentRevision = s.update.Name(), s.current.Name()
	if s.collisions > 0 {
		status.CollisionCount = ptr.To(s.collisions)
	}
	status.LabelSelector = selector.String()
	status.VolumeClaims = claims
	return nil
}

type counts struct {
	replicas, ready, available                       int32
	current, updated, updatedReady, updatedAvailable int32
	inPlace                                          int32
	// pending pods are to be updated, kept ones are not while the partition
	// keeps them.
	pending, kept int
}

func countPods(s *scope) counts {
	c := counts{}
	for _, m := range s.condemned {
		if m.DeletionTimestamp == nil {
			c.replicas++
		}
	}
	for _, pod := range s.plan.Pods {
		if pod.Pod.DeletionTimestamp != nil {
			continue
		}
		c.replicas++
		add(&c.ready, pod.Ready)
		add(&c.available, pod.Available)
		add(&c.updated, pod.Updated)
		add(&c.updatedReady, pod.Updated && pod.Ready)
		add(&c.updatedAvailable, pod.Updated && pod.Available)
		add(&c.inPlace, pod.Updated && inplace.UpdatedInPlace(pod.Pod))
		if ordinal, _ := ordinalOf(s.set.Name, pod.Pod.Name); !pod.Updated && s.held.Has(ordinal) {
			c.kept++
		} else if !pod.Updated {
			c.pending++
		}
		add(&c.current, pod.Proved && pod.Pod.Labels[appsv1beta1.ControllerRevisionHashLabel] == s.current.Name())
	}
	return c
}

func add(count *int32, counts bool) {
	if counts {
		*count++
	}
}

// computeBlockers returns the worst blockers: what the server refused, then what
// the plan says. One that was reported before keeps the time since which it
// blocks.
func computeBlockers(s *scope, before []appsv1beta1.Blocker) []appsv1beta1.Blocker {
	known := map[[2]string]metav1.Time{}
	for _, b := range before {
		known[[2]string{b.Pod, b.Reason}] = b.Since
	}
	var blockers []appsv1beta1.Blocker
	for _, b := range slices.Concat(refusedMoves(s), s.plan.Blockers) {
		if len(blockers) == maxBlockers {
			break
		}
		since, ok := known[[2]string{b.Pod.Name, b.Reason}]
		switch {
		case ok:
		case !b.Since.IsZero():
			since = metav1.NewTime(b.Since)
		default:
			since = metav1.NewTime(s.now)
		}
		blockers = append(blockers, appsv1beta1.Blocker{
			Pod: b.Pod.Name, Step: string(b.State), Reason: b.Reason, Message: b.Message, Since: since.Rfc3339Copy(),
		})
	}
	return blockers
}

// refusedMoves returns a blocker for every move that failed.
func refusedMoves(s *scope) []inplace.Blocker {
	var blockers []inplace.Blocker
	for _, pod := range s.plan.Pods {
		if err := s.refused[pod.Pod.Name]; err != nil {
			blockers = append(blockers, inplace.Blocker{
				Pod: pod.Pod, State: pod.Step.State, Reason: appsv1beta1.ReasonFailedUpdatePodInPlace, Message: summary([]error{err}),
			})
		}
	}
	return blockers
}
