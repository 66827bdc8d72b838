// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// update lets the pods take their next steps towards their revisions.
func (r *Reconciler) update(ctx context.Context, s *scope) error {
	facts, err := r.podFacts(ctx, s)
	if err != nil {
		return err
	}
	asked := s.workload(facts)
	for _, m := range s.lingering {
		f, err := workload.Facts(ctx, r.Client, s.Revisions, m.Pod, s.Now)
		if err != nil {
			return err
		}
		asked.Lingering = append(asked.Lingering, f)
	}
	s.Decide(ctx, r.Executor, asked, slices.Concat(s.away, s.waiting)...)
	s.counts, s.claimCounts = countPods(s), s.countClaims()
	if s.isUpdated() {
		s.Revisions.Current, s.counts.current = s.Revisions.Update, s.counts.Updated
	}
	return s.CarryHandedOver(ctx, r.Executor, s.handOver)
}

// isUpdated reports whether no pod needs the current revision any more: there are pods, all
// of them ready and at the update revision, and the partition keeps no others at the current
// one when there are more. By their ordinals it keeps the first: with those, all are there.
func (s *scope) isUpdated() bool {
	partition := int(s.set.GetPartition())
	keepsOthers := partition > s.replicas || partition > 0 && s.set.GetUnorderedUpdate() != nil
	return s.replicas > 0 && !keepsOthers && len(s.condemned) == 0 && int(s.counts.UpdatedReady) == s.replicas
}

func (s *scope) workload(facts []inplace.PodFacts) inplace.Workload {
	condemned := make([]*corev1.Pod, 0, len(s.condemned))
	for _, m := range s.condemned {
		condemned = append(condemned, m.Pod)
	}
	return inplace.Workload{
		Target:               s.target(),
		Current:              new(s.Revisions.InPlace(s.Revisions.Current)),
		Replicas:             s.replicas,
		Withheld:             s.withheld,
		MaxUnavailable:       int(s.set.GetMaxUnavailable()),
		MinReadySeconds:      s.set.GetMinReadySeconds(),
		MaxConcurrentResizes: workload.MaxConcurrentResizes(s.set.GetInPlaceUpdateStrategy(), s.replicas),
		MaxConcurrentClaims:  workload.MaxConcurrentClaims(s.set.Spec.VolumeClaimUpdateStrategy, s.replicas),
		ChangingClaims:       s.changingPods(),
		Stopped:              s.isStopped(),
		Ordered:              s.set.GetPodManagementPolicy() == appsv1.OrderedReadyPodManagement,
		Pods:                 facts,
		Condemned:            condemned,
	}
}

// target is what the pods that are not kept at an earlier revision become.
func (s *scope) target() inplace.Target {
	target := workload.TargetOf(s.set.GetInPlaceUpdateStrategy(), s.set.Annotations, s.replicas)
	target.Revision = s.Revisions.InPlace(s.Revisions.Update)
	// Claims are the user's business otherwise, and pods get them when they are made.
	target.IgnoresClaims = !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates()
	target.CannotResize = s.CannotResize
	target.Policy, target.Lifecycle = s.set.GetPodUpdatePolicy(), s.set.GetLifecycle()
	return target
}

// podFacts returns the facts of the pods that stay, in the order of updates.
func (r *Reconciler) podFacts(ctx context.Context, s *scope) ([]inplace.PodFacts, error) {
	facts := make([]inplace.PodFacts, 0, len(s.members))
	for _, m := range s.inUpdateOrder() {
		f, err := workload.Facts(ctx, r.Client, s.Revisions, m.Pod, s.Now)
		if err != nil {
			return nil, err
		}
		f.Held, f.Priority = s.held.Has(m.ordinal), s.priorityOf(m)
		f.Claims = s.claimSteps[m.Name]
		facts = append(facts, f)
	}
	return facts, nil
}
