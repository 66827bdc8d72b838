// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/recreate"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
)

// observeClaims reads the claims of the wanted pods, and finds out what those need
// that are to follow their templates.
func (r *Reconciler) observeClaims(ctx context.Context, s *scope) error {
	s.claims = workload.NewClaims(r.Client, s.set, r.Executor.ClaimRefusals)
	s.claims.ClassesUnknown = r.NamespaceScope
	for _, ordinal := range s.ordinals {
		templates := slices.Concat(s.set.Spec.VolumeClaimTemplates, s.claimTemplates(ordinal))
		if err := s.claims.Read(ctx, podName(s.set.Name, ordinal), templates); err != nil {
			return err
		}
	}
	r.refuseToShrink(s)
	s.claimSteps = map[string]volumes.Claims{}
	session := r.recreate.Open(s.Owner, s.set.Spec.VolumeClaimUpdateStrategy, s.Now)
	session.NotPermitted = r.NamespaceScope
	pods := byOrdinal(s.members)
	for _, ordinal := range s.ordinals {
		if err := r.renewClaims(ctx, s, session, ordinal, pods[ordinal]); err != nil {
			return err
		}
	}
	r.observeKept(ctx, s, session)
	s.failed = map[string][]string{} // one may have failed now
	for _, ordinal := range s.ordinals {
		if pods[ordinal] == nil {
			if err := r.awaitVolumes(ctx, s, ordinal); err != nil {
				return err
			}
		}
		if s.held.Has(ordinal) || s.isStopped() {
			s.nameHeldUndos(ordinal)
			continue
		}
		if err := r.stepClaims(ctx, s, session, ordinal, pods[ordinal]); err != nil {
			return err
		}
	}
	return nil
}

// refuseToShrink says once of a spec that its claims will not become smaller: a snapshot
// restores to no less than it was taken of.
func (r *Reconciler) refuseToShrink(s *scope) {
	if !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() || s.set.Status.ObservedGeneration == s.set.Generation {
		return
	}
	before := s.Revisions.Current.Claims
	for i := range s.set.Spec.VolumeClaimTemplates {
		template := &s.set.Spec.VolumeClaimTemplates[i]
		earlier := slices.IndexFunc(before, func(other corev1.PersistentVolumeClaim) bool { return other.Name == template.Name })
		if earlier < 0 {
			continue
		}
		has, wants := before[earlier].Spec.Resources.Requests[corev1.ResourceStorage], template.Spec.Resources.Requests[corev1.ResourceStorage]
		if wants.Cmp(has) < 0 {
			r.Recorder.Eventf(s.set, nil, corev1.EventTypeWarning, appsv1beta1.ReasonClaimNotShrunk, workload.ActionUpdate,
				"claim template %s asks for %s, less than the %s before: existing claims keep their size, also when they are recreated from a snapshot",
				template.Name, wants.String(), has.String())
		}
	}
}

// stepClaims finds out what the claims of an ordinal need that are to follow their
// templates.
func (r *Reconciler) stepClaims(ctx context.Context, s *scope, session *recreate.Session, ordinal int, m *member) error {
	templates := s.claimTemplates(ordinal)
	if !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		templates = s.thatAreUndone(ordinal, templates)
	}
	if len(templates) == 0 {
		return nil
	}
	r.judgeClaims(ctx, s, session, ordinal, m)
	pod := s.podOfClaims(ordinal, m)
	steps, err := s.claims.Steps(ctx, pod, templates, s.Now)
	s.claimSteps[pod.Name] = steps
	return err
}

// claimTemplates returns the claim templates of the revision at which an ordinal is
// wanted.
func (s *scope) claimTemplates(ordinal int) []corev1.PersistentVolumeClaim {
	return workload.ClaimTemplates(s.revisionFor(ordinal), s.set.Spec.VolumeClaimTemplates)
}

// podOfClaims returns what the claims of an ordinal have to know of its pod, which is
// nil if there is none.
func (s *scope) podOfClaims(ordinal int, m *member) workload.PodOfClaims {
	pod := workload.PodOfClaims{Name: podName(s.set.Name, ordinal)}
	if m != nil {
		pod.Pod = m.Pod
	}
	if s.set.GetPodUpdatePolicy() == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
		pod.Keep = "podUpdatePolicy InPlaceOnly keeps its pod: allow recreation with InPlaceIfPossible, or delete the pod when it may go"
	}
	return pod
}

// awaitVolumes keeps a pod away that was deleted for its volumes to grow, until they
// have, and asks for the growth again now that nothing uses them.
func (r *Reconciler) awaitVolumes(ctx context.Context, s *scope, ordinal int) error {
	pod := s.podOfClaims(ordinal, nil)
	if !s.set.Spec.VolumeClaimUpdateStrategy.FollowsTemplates() {
		return nil
	}
	until, steps, err := s.claims.Await(ctx, pod, s.claimTemplates(ordinal), s.Now)
	if err != nil || until.IsZero() {
		return err
	}
	s.gated.Insert(pod.Name)
	s.away = append(s.away, workload.Away(pod.Name, s.set.Namespace, steps))
	s.Requeue.Within(max(until.Sub(s.Now), time.Second))
	s.Updating.Add(r.Executor.ChangeClaims(ctx, s.set, steps.In(volumes.Changing)))
	return nil
}

// countClaims counts the claims of the wanted pods.
func (s *scope) countClaims() workload.ClaimCounts {
	pods := make([]string, 0, len(s.ordinals))
	for _, ordinal := range s.ordinals {
		pods = append(pods, podName(s.set.Name, ordinal))
	}
	counts := s.claims.Count(s.set.Spec.VolumeClaimTemplates, pods, s.claimSteps)
	s.countKept(&counts)
	return counts
}

// isStopped reports whether no pod may start its update.
func (s *scope) isStopped() bool {
	return s.set.IsPaused() || s.set.GetUpdateStrategyType() == appsv1.OnDeleteStatefulSetStrategyType
}
