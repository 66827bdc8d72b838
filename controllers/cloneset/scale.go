// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// scale creates and deletes pods. What fails with one pod does not keep the others
// from being updated.
func (r *Reconciler) scale(ctx context.Context, s *scope) error {
	s.scaled = planScale(s.scaleFacts(0))
	unwanted := slices.Clone(s.outgoing)
	for _, m := range s.scaled.remove {
		unwanted = append(unwanted, m.Pod)
	}
	gated, err := r.settleClaims(ctx, s, slices.DeleteFunc(slices.Clone(unwanted), func(pod *corev1.Pod) bool {
		return inplace.Remove(pod, s.target(), s.Now).Action != inplace.Recreate // a hook holds it
	}))
	if err != nil {
		return err
	}
	if err := r.createPods(ctx, s); err != nil {
		return err
	}
	workload.ReportWithheld(r.Recorder, s.set, s.scaled.withheld)
	for _, m := range s.members {
		if m.Status.Phase == corev1.PodPending {
			s.Scaling.Add(r.ensureClaimsOf(ctx, s, m.Pod))
		}
	}
	for _, pod := range unwanted {
		if !gated.Has(pod.Name) {
			s.Scaling.Add(r.Pods.Remove(ctx, s.Owner, pod, s.target(), s.Now))
		}
	}
	return nil
}

// scaleFacts returns what the number of pods depends on. away is how many of those that
// are missing are not made before something else has ended.
func (s *scope) scaleFacts(away int) scaleFacts {
	limit := -1
	if limited, ok := s.set.GetScaleMaxUnavailable(); ok {
		limit = int(limited)
	}
	return scaleFacts{
		members: s.members, away: away, replicas: int(s.set.GetReplicas()), partition: s.partition(), surge: int(s.set.GetMaxSurge()),
		maxUnavailable: int(s.set.GetMaxUnavailable()), stopped: s.isStopped(), paused: s.set.IsPaused(), limit: limit,
	}
}

// createPods creates the pods that are missing.
func (r *Reconciler) createPods(ctx context.Context, s *scope) error {
	if !s.scaled.lacksPods() {
		return nil
	}
	ids, err := r.newIDs(ctx, s)
	if err != nil {
		return err
	}
	away := s.awaited.Len() + len(s.predecessors())
	s.scaled = planScale(s.scaleFacts(away))
	target, pods := s.target(), []workload.NewPod{}
	for _, revision := range s.revisionsOfNew(away) {
		templates, err := s.recalledTemplates(revision, ids.claims)
		if err != nil {
			s.Scaling.Add(err)
			break
		}
		pod, err := newPod(s.set, revision, templates, ids.next())
		if err != nil {
			s.Scaling.Add(err)
			break
		}
		inplace.PrepareNew(pod.Pod, target, s.Now)
		pods = append(pods, pod)
	}
	s.Scaling.Errs = append(s.Scaling.Errs, r.Pods.Create(ctx, s.Owner, pods)...)
	return nil
}

// revisionsOfNew returns the revisions of the pods that are created now, of which some are
// kept away: no more than one reconciliation creates, however many are missing.
func (s *scope) revisionsOfNew(away int) []*history.Revision {
	// Those that are kept away come back at the update revision, or else at the current one.
	atUpdate := s.scaled.atUpdate
	atCurrent := s.scaled.atCurrent - max(away-atUpdate, 0)
	atUpdate = min(max(atUpdate-away, 0), workload.MaxCreations)
	atCurrent = min(max(atCurrent, 0), workload.MaxCreations-atUpdate)
	return slices.Concat(
		slices.Repeat([]*history.Revision{s.Revisions.Update}, atUpdate),
		slices.Repeat([]*history.Revision{s.Revisions.Current}, atCurrent))
}

// predecessors returns the pods that are being deleted and whose instance IDs and claims
// new pods take over, where claims are reused. It leaves out lost pods, pods that the
// spec names to be deleted, since no pod takes over their claims, and pods in s.awaited,
// which are waited for until their volumes have grown.
func (s *scope) predecessors() []*corev1.Pod {
	wanted := len(s.claimTemplates(s.Revisions.Update)) + len(s.claimTemplates(s.Revisions.Current))
	mayWant := wanted > 0 || s.Revisions.Current.Claims == nil // of what is recalled
	if !s.set.ReusesClaims() || !mayWant || !s.scaled.lacksPods() {
		return nil
	}
	named, found := s.namedForDeletion(), []*corev1.Pod{}
	for _, pod := range slices.Concat(s.leaving, s.outgoing) {
		isGoing := pod.DeletionTimestamp != nil || inplace.Remove(pod, s.target(), s.Now).Action == inplace.Recreate // no hook holds it
		id, _ := idOf(s.set.Name, pod.Name)
		if !isGoing || !workload.HasOwnClaims(pod) || inplace.IsLost(pod, s.Now) || named.Has(pod.Name) || s.awaited.Has(id) {
			continue
		}
		found = append(found, pod)
		if pod.DeletionTimestamp != nil {
			s.Requeue.Within(inplace.LostAt(pod).Sub(s.Now))
		}
	}
	return found
}

// ensureClaimsOf makes the claims again that a pod waits for: one that was
// deleted would keep its pod pending for ever.
func (r *Reconciler) ensureClaimsOf(ctx context.Context, s *scope, pod *corev1.Pod) error {
	id, _ := idOf(s.set.Name, pod.Name)
	templates := s.set.Spec.VolumeClaimTemplates
	if revision := s.Revisions.Of(pod); revision != nil {
		templates = s.claimTemplates(revision)
	}
	return workload.EnsureClaims(ctx, r.Client, s.Owner, workload.ClaimsOf(pod, newClaims(s.set, templates, id)), nil)
}

// newIDs returns the source of the instance IDs of new pods. Where claims are
// reused, those that wait for a pod come first. The IDs of pods that the spec
// names to be deleted are not given again: their claims go with them or stay, and
// belong to no other pod.
func (r *Reconciler) newIDs(ctx context.Context, s *scope) (*idSource, error) {
	ids := &idSource{taken: sets.New[string](), random: r.random}
	names := s.namedForDeletion().UnsortedList()
	for _, pod := range slices.Concat(s.Pods, s.Strays) {
		names = append(names, pod.Name)
	}
	for _, name := range names {
		if id, ok := idOf(s.set.Name, name); ok {
			ids.taken.Insert(id)
		}
	}
	claims, err := r.claimsOfSet(ctx, s)
	if err != nil {
		return nil, err
	}
	if s.awaited, err = r.awaitVolumes(ctx, s, claims); err != nil {
		return nil, err
	}
	ids.claims = claims
	free, dying, away := sets.New[string](), sets.New[string](), sets.New[string]()
	for _, claim := range claims {
		id, ok := idOf(s.set.Name, claim.Name)
		switch {
		case !ok:
		case claim.DeletionTimestamp != nil:
			dying.Insert(id)
		default:
			free.Insert(id)
			if volumes.IsAway(claim, s.Now) {
				away.Insert(id)
			}
		}
	}
	reused := away
	if s.set.ReusesClaims() {
		reused = free
	}
	ids.free, err = r.withFreeNames(ctx, s, reused.Difference(dying).Difference(ids.taken).Difference(s.awaited))
	ids.taken = ids.taken.Union(free).Union(dying)
	return ids, err
}

// withFreeNames returns those instance IDs, sorted, of which no pod has the name. Where one has that is
// not of the set, the claims stay without a pod: no other can have them.
func (r *Reconciler) withFreeNames(ctx context.Context, s *scope, ids sets.Set[string]) ([]string, error) {
	var free []string
	for _, id := range sets.List(ids) {
		name := podName(s.set.Name, id)
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.set.Namespace, Name: name}, &corev1.Pod{})
		switch {
		case apierrors.IsNotFound(err):
			free = append(free, id)
		case err != nil:
			return nil, fmt.Errorf("look for pod %s/%s: %w", s.set.Namespace, name, err)
		}
	}
	return free, nil
}
