// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset

import (
	"context"

	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/engine"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// patchStatus reports what the reconciliation found and did, in one patch, if
// anything differs from what is reported already. failure is the error that
// ended the reconciliation, if any.
func (r *Reconciler) patchStatus(ctx context.Context, s *scope, failure error) error {
	status, common := &s.set.Status, commonStatus(s.set)
	return r.PatchStatus(ctx, &s.Round, common, failure, func() {
		if s.Planned {
			// The status and the labels of pods have hashes, and no names.
			status.UpdateRevision, status.CurrentRevision = s.Revisions.Update.Hash(), s.Revisions.Current.Hash()
			status.DaemonSetHash = status.UpdateRevision
			s.setCounts(status)
		}
		conditions := s.Conditions(&status.Conditions)
		s.SetConditions(conditions, s.standing, failure)
		r.Metrics.Report(client.ObjectKeyFromObject(s.set), s.Rollout(conditions), s.Now)
	})
}

// commonStatus returns the fields that all kinds have. The names of revisions are made from
// the hashes that the status holds.
func commonStatus(set *appsv1beta1.DaemonSet) engine.Status {
	status := &set.Status
	update, current := set.Name+"-"+status.UpdateRevision, set.Name+"-"+status.CurrentRevision
	return engine.Status{
		ObservedGeneration: &status.ObservedGeneration, Resize: &status.Resize, Blockers: &status.Blockers,
		UpdateRevision: &update, CurrentRevision: &current, CollisionCount: &status.CollisionCount,
	}
}

// setCounts counts nodes, as Kubernetes does for its DaemonSets: pods that stay on nodes which get
// no new ones, as on one that does not answer, are misscheduled.
func (s *scope) setCounts(status *appsv1beta1.DaemonSetStatus) {
	mark, lifecycle := s.Revisions.MarkOf(s.Revisions.Update), s.set.Spec.Lifecycle.OrNil()
	current, ready, updated, available, misscheduled := int32(0), int32(0), int32(0), int32(0), int32(0)
	count := func(counter *int32, is bool) {
		if is {
			*counter++
		}
	}
	for _, t := range s.turns {
		if !t.runs || t.pod == nil || t.pod.DeletionTimestamp != nil {
			continue
		}
		current++
		count(&ready, podutils.IsPodReady(t.pod))
		count(&updated, inplace.RevisionOf(t.pod) == mark)
		count(&available, workload.IsHealthy(t.pod, lifecycle, s.set.Spec.MinReadySeconds, s.Now))
	}
	for _, n := range s.nodes {
		count(&misscheduled, !n.runs && len(n.pods) > 0)
	}
	status.DesiredNumberScheduled, status.CurrentNumberScheduled, status.NumberMisscheduled = int32(s.desired), current, misscheduled //nolint:gosec // nodes
	status.NumberReady, status.UpdatedNumberScheduled = ready, updated
	status.NumberAvailable, status.NumberUnavailable = available, max(int32(s.desired)-available, 0) //nolint:gosec // nodes
	status.InPlaceUpdated, status.Recreated = s.counts.InPlace, s.counts.Updated-s.counts.InPlace
}

// standing returns where the pods of the set stand. Nodes that are not ready are to have their
// pods, too, and a pod that stays where no new one is made serves as any other.
func (s *scope) standing() engine.Standing {
	existing, serving := 0, 0
	for _, t := range s.turns {
		if t.pod == nil || t.pod.DeletionTimestamp != nil {
			continue
		}
		existing++
		if workload.IsHealthy(t.pod, s.set.Spec.Lifecycle.OrNil(), s.set.Spec.MinReadySeconds, s.Now) {
			serving++
		}
	}
	wanted := len(s.turns) - len(s.placed.vacant)
	return engine.Standing{
		Replicas: wanted, Wanted: wanted, Existing: existing, Leaving: s.leaving(), Vacant: len(s.placed.vacant),
		Available: serving, Pending: s.pending, Kept: s.kept, Keeper: s.keeper(),
		OnDelete: s.set.IsOnDelete(), Paused: s.set.IsPaused(), Revision: s.Revisions.Update.Hash(),
	}
}

// keeper says what keeps pods at their revision.
func (s *scope) keeper() string {
	switch hasPartition := s.partition() > 0; {
	case s.set.GetRollingUpdate().Selector == nil:
		return "partition"
	case hasPartition:
		return "partition and selector of nodes"
	default:
		return "selector of nodes"
	}
}

// leaving returns how many pods are to go, but for those of a surge.
func (s *scope) leaving() int {
	count := 0
	for _, n := range s.nodes {
		if !n.keeps {
			count += len(n.pods)
		}
	}
	return count
}
