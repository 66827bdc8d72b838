// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
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
	common := engine.Status{ObservedGeneration: &status.ObservedGeneration, Resize: &status.Resize, Blockers: &status.Blockers}
	return r.PatchStatus(ctx, &s.Round, common, failure, func() error {
		if s.Planned {
			if err := computeCounts(s, status); err != nil {
				return err
			}
		}
		setConditions(s, failure)
		r.Metrics.Report(client.ObjectKeyFromObject(s.set), s.rollout(), s.Now)
		r.recreate.Metrics.Keep(kind.GroupKind().String(), client.ObjectKeyFromObject(s.set), status.VolumeClaims)
		return nil
	})
}

// computeCounts fills in what is counted, as it was observed at the start of the
// reconciliation. A pod that is between two revisions counts as neither.
func computeCounts(s *scope, status *appsv1beta1.StatefulSetStatus) error {
	selector, err := metav1.LabelSelectorAsSelector(s.set.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read spec.selector: %w", err)
	}
	c := s.counts
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.Replicas, c.Ready, c.Available
	status.CurrentReplicas, status.UpdatedReplicas = c.current, c.Updated
	status.UpdatedReadyReplicas, status.UpdatedAvailableReplicas = c.UpdatedReady, c.UpdatedAvailable
	status.InPlaceUpdated, status.Recreated = c.InPlace, c.Updated-c.InPlace
	status.UpdateRevision, status.CurrentRevision = s.Revisions.Update.Name(), s.Revisions.Current.Name()
	if s.Revisions.Collisions > 0 {
		status.CollisionCount = ptr.To(s.Revisions.Collisions)
	}
	status.LabelSelector = selector.String()
	status.VolumeClaims = s.claimCounts.Status
	return nil
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
