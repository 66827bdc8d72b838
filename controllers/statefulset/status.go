// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
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
	return r.PatchStatus(ctx, &s.Round, commonStatus(s.set), failure, func() {
		if s.Planned {
			computeCounts(s, status)
		}
		s.SetConditions(s.conditions(), s.standing, failure)
		r.Metrics.Report(client.ObjectKeyFromObject(s.set), s.rollout(), s.Now)
		r.recreate.Metrics.Keep(kind.GroupKind().String(), client.ObjectKeyFromObject(s.set), status.VolumeClaims)
	})
}

// conditions are those of the status.
func (s *scope) conditions() engine.Conditions { return s.Conditions(&s.set.Status.Conditions) }

func commonStatus(set *appsv1beta1.StatefulSet) engine.Status {
	status := &set.Status
	return engine.Status{
		ObservedGeneration: &status.ObservedGeneration, Resize: &status.Resize, Blockers: &status.Blockers,
		UpdateRevision: &status.UpdateRevision, CurrentRevision: &status.CurrentRevision, CollisionCount: &status.CollisionCount,
	}
}

// computeCounts fills in what is counted, as it was observed at the start of the
// reconciliation. A pod that is between two revisions counts as neither.
func computeCounts(s *scope, status *appsv1beta1.StatefulSetStatus) {
	c := s.counts
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.Replicas, c.Ready, c.Available
	status.CurrentReplicas, status.UpdatedReplicas = c.current, c.Updated
	status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.UpdatedReady, c.UpdatedAvailable
	status.InPlaceUpdated, status.Recreated = c.InPlace, c.Updated-c.InPlace
	status.LabelSelector = s.Selector.String()
	status.VolumeClaims = s.claimCounts.Status
}

type counts struct {
	engine.Counts
	// current pods have proved the current revision. pending pods are to be updated, kept ones
	// are not while the partition keeps them.
	current, pending, kept int32
}

func countPods(s *scope) counts {
	c := counts{Counts: engine.Count(s.Plan.Pods)}
	for _, m := range s.condemned {
		if m.DeletionTimestamp == nil {
			c.Replicas++
		}
	}
	for _, pod := range s.Plan.Pods {
		ordinal, _ := ordinalOf(s.set.Name, pod.Pod.Name)
		switch {
		case pod.Pod.DeletionTimestamp != nil:
			continue
		case pod.Updated:
		case s.held.Has(ordinal):
			c.kept++
		default:
			c.pending++
		}
		if pod.Proved && inplace.RevisionOf(pod.Pod) == s.Revisions.MarkOf(s.Revisions.Current) {
			c.current++
		}
	}
	return c
}

// standing returns where the pods of the set stand.
func (s *scope) standing() engine.Standing {
	return engine.Standing{
		Replicas: s.replicas, Wanted: s.replicas, Existing: len(s.members), Leaving: len(s.condemned), Withheld: s.withheld,
		Available: int(s.counts.Available), Pending: int(s.counts.pending), Kept: int(s.counts.kept),
		OnDelete: s.set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType, Paused: s.set.IsPaused(),
		Revision: s.Revisions.Update.Name(), Claims: s.claimCounts,
	}
}
