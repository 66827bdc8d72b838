// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
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
		setCounts(s, status)
		status.Resize = workload.ResizeStatus(s.Plan)
		status.Blockers = workload.Blockers(s.Plan, s.Result.Failed, before.Status.Blockers, s.Now)
	}
	// That nothing can come of a spec is an observation, too: who compares generations
	// would wait for ever.
	if workload.IsInvalidSpec(failure) || s.Planned && failure == nil {
		status.ObservedGeneration = s.set.Generation
	}
	setConditions(s, before.Status, failure)
	r.metrics.Report(client.ObjectKeyFromObject(s.set), s.rollout(), s.Now)
	if apiequality.Semantic.DeepEqual(before.Status, *status) {
		return nil
	}
	// With the resource version, a set of the same name that was made meanwhile
	// does not get the status of the one before.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, s.set, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch status of %s: %w", s.Owner, err)
	}
	workload.ReportStuck(r.recorder, s.set, s.Plan, before.Status.Blockers, status.Blockers)
	if !s.Planned {
		workload.ReportStall(r.recorder, s.set, failure)
	}
	return nil
}

// setCounts fills in what is counted, as it was observed at the start of the
// reconciliation. A pod that is between two revisions counts as neither.
func setCounts(s *scope, status *appsv1beta1.CloneSetStatus) {
	c := s.counts
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.replicas+s.excluded, c.ready, c.available
	status.UpdatedReplicas, status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.updated, c.updatedReady, c.updatedAvailable
	status.ExpectedUpdatedReplicas = s.set.GetReplicas() - s.set.GetPartition()
	status.InPlaceUpdated, status.Recreated = c.inPlace, c.updated-c.inPlace
	status.UpdateRevision, status.CurrentRevision = s.Revisions.Update.Name(), s.Revisions.Current.Name()
	if s.Revisions.Collisions > 0 {
		status.CollisionCount = ptr.To(s.Revisions.Collisions)
	}
	status.LabelSelector = s.selector.String()
	// Others have none: their status is what it was before claims could follow.
	if status.VolumeClaims = nil; s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		status.VolumeClaims = s.claimCounts.Status
	}
}

type counts struct {
	replicas, ready, available              int32
	updated, updatedReady, updatedAvailable int32
	inPlace                                 int32
	// pending pods are to be updated or made again, kept ones are not updated
	// while the partition keeps them.
	pending, kept int32
}

// countPods counts the members, whose states were planned from facts.
func countPods(members []*member, facts []inplace.PodFacts, states []inplace.PodState) counts {
	c := counts{replicas: int32(len(states))}
	for i, pod := range states {
		add(&c.ready, pod.Ready)
		add(&c.available, pod.Available)
		add(&c.updated, pod.Updated)
		add(&c.updatedReady, pod.Updated && pod.Ready)
		add(&c.updatedAvailable, pod.Updated && pod.Available)
		add(&c.inPlace, pod.Updated && inplace.UpdatedInPlace(pod.Pod))
		isKept := facts[i].Held && !pod.Updated && !members[i].asked
		add(&c.kept, isKept)
		add(&c.pending, !isKept && (!pod.Updated || members[i].asked))
	}
	return c
}

func add(count *int32, counts bool) {
	if counts {
		*count++
	}
}
