// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
)

// observeClaims reads the claims of the members, and finds out what those need that
// are to follow their templates.
func (r *Reconciler) observeClaims(ctx context.Context, s *scope) error {
	s.claims, s.claimSteps = workload.NewClaims(r.Client, s.set, r.Executor.ClaimRefusals), map[string]volumes.Claims{}
	s.claims.ClassesUnknown = r.NamespaceScope
	if !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		return nil
	}
	templates := s.claimTemplates(s.Revisions.Update)
	present := slices.Concat(s.set.Spec.VolumeClaimTemplates, templates)
	for _, m := range s.members {
		if err := s.claims.Read(ctx, m.Name, present); err != nil {
			return err
		}
	}
	if s.isStopped() {
		return nil
	}
	for _, m := range s.members {
		if !isPodName(s.set.Name, m.Name) {
			continue // its claims are not the set's
		}
		var err error
		if s.claimSteps[m.Name], err = s.claims.Steps(ctx, s.podOfClaims(m), templates, s.Now); err != nil {
			return err
		}
	}
	return nil
}

// claimTemplates returns the claim templates of pods at a revision: those that are part of
// it. Where claims do not follow them, they may have changed since: of those that are still
// there the present ones count, and at the update revision they alone.
func (s *scope) claimTemplates(revision *history.Revision) []corev1.PersistentVolumeClaim {
	present := s.set.Spec.VolumeClaimTemplates
	if s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		return workload.ClaimTemplates(revision, present)
	}
	if revision == s.Revisions.Update {
		return present
	}
	templates := slices.Clone(workload.ClaimTemplates(revision, present))
	for i := range templates {
		isSame := func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == templates[i].Name }
		if j := slices.IndexFunc(present, isSame); j >= 0 {
			templates[i] = present[j]
		}
	}
	return templates
}

// recalledTemplates returns the claim templates of pods that are to be made at a revision.
// One that says nothing about claims, as those of OpenKruise and of earlier releases, may
// mount what has no template any more: that comes from a claim which another pod has of it.
func (s *scope) recalledTemplates(revision *history.Revision, claims []*corev1.PersistentVolumeClaim) ([]corev1.PersistentVolumeClaim, error) {
	templates := s.claimTemplates(revision)
	if revision.Claims != nil || revision == s.Revisions.Update {
		return templates, nil
	}
	pod, err := workload.PodFrom(s.Revisions.InPlace(revision), s.Owner, s.set.Name)
	if err != nil {
		return nil, err
	}
	workload.MountClaims(pod, templates)
	for _, name := range workload.MountsWithoutVolume(&pod.Spec) {
		isOfTemplate := func(claim *corev1.PersistentVolumeClaim) bool {
			id, ok := idOf(s.set.Name, claim.Name)
			return ok && claim.Name == volumes.ClaimName(name, podName(s.set.Name, id))
		}
		if i := slices.IndexFunc(claims, isOfTemplate); i >= 0 {
			templates = append(slices.Clip(templates), workload.TemplateOf(name, claims[i]))
		}
	}
	return templates, nil
}

func (s *scope) podOfClaims(m *member) workload.PodOfClaims {
	pod := workload.PodOfClaims{Name: m.Name, Pod: m.Pod}
	switch {
	case !s.set.ReusesClaims():
		pod.Keep = "its data would go with its pod: set scaleStrategy.enablePVCReuse, and the pod is recreated on its claim"
	case s.set.GetPodUpdatePolicy() == appsv1beta1.InPlaceOnlyPodUpdateStrategyType:
		pod.Keep = "updateStrategy InPlaceOnly keeps its pod: allow recreation with InPlaceIfPossible, or delete the pod when it may go"
	}
	return pod
}

// awaitVolumes returns the IDs of pods that were deleted for their volumes to grow and
// are kept away until they have, and asks for the growth again now that nothing uses
// them.
func (r *Reconciler) awaitVolumes(ctx context.Context, s *scope, claims []*corev1.PersistentVolumeClaim) (sets.Set[string], error) {
	awaited := sets.New[string]()
	if !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		return awaited, nil
	}
	templates := s.claimTemplates(s.Revisions.Update)
	for _, pod := range s.absentPods(claims) {
		if err := s.claims.Read(ctx, pod.Name, templates); err != nil {
			return nil, err
		}
		until, steps, err := s.claims.Await(ctx, pod, templates, s.Now)
		if err != nil {
			return nil, err
		}
		if until.IsZero() {
			continue
		}
		id, _ := idOf(s.set.Name, pod.Name)
		awaited.Insert(id)
		s.away = append(s.away, workload.Away(pod.Name, s.set.Namespace, steps))
		s.Requeue.Within(max(until.Sub(s.Now), time.Second))
		if pod.Pod == nil {
			s.Updating.Add(r.Executor.ChangeClaims(ctx, s.set, steps.In(volumes.Changing)))
		}
	}
	return awaited, nil
}

// absentPods returns what the claims that have no pod, or one that is being deleted,
// have to know of it.
func (s *scope) absentPods(claims []*corev1.PersistentVolumeClaim) []workload.PodOfClaims {
	var pods []workload.PodOfClaims
	for _, id := range s.idsWithoutPod(claims) {
		pods = append(pods, workload.PodOfClaims{Name: podName(s.set.Name, id)})
	}
	for _, pod := range s.leaving {
		pods = append(pods, workload.PodOfClaims{Name: pod.Name, Pod: pod})
	}
	return pods
}

// idsWithoutPod returns the IDs of claims for which there is no pod.
func (s *scope) idsWithoutPod(claims []*corev1.PersistentVolumeClaim) []string {
	ids := sets.New[string]()
	for _, claim := range claims {
		if id, ok := idOf(s.set.Name, claim.Name); ok && claim.DeletionTimestamp == nil {
			ids.Insert(id)
		}
	}
	for _, pod := range slices.Concat(s.Pods, s.Strays) {
		if id, ok := idOf(s.set.Name, pod.Name); ok {
			ids.Delete(id)
		}
	}
	return sets.List(ids)
}

// countClaims counts the claims of the members.
func (s *scope) countClaims() workload.ClaimCounts {
	pods := make([]string, 0, len(s.members))
	for _, m := range s.members {
		pods = append(pods, m.Name)
	}
	return s.claims.Count(s.set.Spec.VolumeClaimTemplates, pods, s.claimSteps)
}
