// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/inplace"
)

// patchStatus reports what the reconciliation found and did, in one patch, if
// anything differs from what is reported already. failure is the error that
// ended the reconciliation, if any.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope, failure error) error {
	status := &s.set.Status
	before := status.DeepCopy()
	return r.PatchStatus(ctx, &s.Round, commonStatus(s.set), failure, func() {
		if s.Planned {
			setCounts(s, status)
		}
		setConditions(s, *before, failure)
		r.Metrics.Report(client.ObjectKeyFromObject(s.set), s.rollout(), s.Now)
	})
}

func commonStatus(set *appsv1beta1.CloneSet) engine.Status {
	status := &set.Status
	return engine.Status{
		ObservedGeneration: &status.ObservedGeneration, Resize: &status.Resize, Blockers: &status.Blockers,
		UpdateRevision: &status.UpdateRevision, CurrentRevision: &status.CurrentRevision, CollisionCount: &status.CollisionCount,
	}
}

// setCounts fills in what is counted, as it was observed at the start of the
// reconciliation. A pod that is between two revisions counts as neither.
func setCounts(s *scope, status *appsv1beta1.CloneSetStatus) {
	c := s.counts
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.Replicas+s.excluded, c.Ready, c.Available
	status.UpdatedReplicas, status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.Updated, c.UpdatedReady, c.UpdatedAvailable
	status.ExpectedUpdatedReplicas = s.set.GetReplicas() - s.set.GetPartition()
	status.InPlaceUpdated, status.Recreated = c.InPlace, c.Updated-c.InPlace
	status.LabelSelector = s.Selector.String()
	// Others have none: their status is what it was before claims could follow.
	if status.VolumeClaims = nil; s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		status.VolumeClaims = s.claimCounts.Status
	}
}

type counts struct {
	engine.Counts
	// pending pods are to be updated or made again, kept ones are not updated
	// while the partition keeps them.
	pending, kept int32
}

// countPods counts the members, whose states were planned from facts.
func countPods(members []*member, facts []inplace.PodFacts, states []inplace.PodState) counts {
	c := counts{Counts: engine.Count(states)}
	for i, pod := range states {
		switch asked := members[i].asked; {
		case facts[i].Held && !pod.Updated && !asked:
			c.kept++
		case !pod.Updated || asked:
			c.pending++
		}
	}
	return c
}
