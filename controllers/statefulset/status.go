// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// patchStatus reports what the reconciliation found and did, in one patch, if
// anything differs from what is reported already. failure is the error that
// ended the reconciliation, if any.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope, failure error) error {
	before := s.set.DeepCopy()
	status := &s.set.Status
	if s.Planned {
		if err := computeCounts(s, status); err != nil {
			return err
		}
		status.Resize = workload.ResizeStatus(s.Plan)
		status.Blockers = workload.Blockers(s.Plan, s.Result.Failed, before.Status.Blockers, s.Now)
	}
	// That nothing can come of a spec is an observation, too: who compares generations
	// would wait for ever.
	if workload.IsInvalidSpec(failure) || s.Planned && failure == nil {
		status.ObservedGeneration = s.set.Generation
	}
	setConditions(s, failure)
	r.metrics.Report(client.ObjectKeyFromObject(s.set), s.rollout(), s.Now)
	r.recreate.Metrics.Keep(kind.GroupKind().String(), client.ObjectKeyFromObject(s.set), status.VolumeClaims)
	if apiequality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	// With the resource version, a set of the same name that was made meanwhile
	// does not get the status of the one before.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, s.set, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status of StatefulSet %s/%s: %w", before.Namespace, before.Name, err)
	}
	workload.ReportStuck(r.recorder, s.set, s.Plan, before.Status.Blockers, status.Blockers)
	if !s.Planned {
		workload.ReportStall(r.recorder, s.set, failure)
	}
	return nil
}

// computeCounts fills in what is counted, as it was observed at the start of the
// reconciliation. A pod that is between two revisions counts as neither.
func computeCounts(s *scope, status *appsv1beta1.StatefulSetStatus) error {
	selector, err := metav1.LabelSelectorAsSelector(s.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read spec.selector: %w", err)
	}
	c := s.counts
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.replicas, c.ready, c.available
	status.CurrentReplicas, status.UpdatedReplicas = c.current, c.updated
	status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.updatedReady, c.updatedAvailable
	status.InPlaceUpdated, status.Recreated = c.inPlace, c.updated-c.inPlace
	status.UpdateRevision, status.CurrentRevision = s.Revisions.Update.Name(), s.Revisions.Current.Name()
	if s.Revisions.Collisions > 0 {
		status.CollisionCount = ptr.To(s.Revisions.Collisions)
	}
	status.LabelSelector = selector.String()
	status.VolumeClaims = s.claimCounts.Status
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
	for _, pod := range s.Plan.Pods {
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
		add(&c.current, pod.Proved && inplace.RevisionOf(pod.Pod) == s.Revisions.MarkOf(s.Revisions.Current))
	}
	return c
}

func add(count *int32, counts bool) {
	if counts {
		*count++
	}
}
