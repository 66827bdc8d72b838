// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/recreate"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
	claims "github.com/insitu-dev/insitu/volumes/recreate"
)

// renewClaims goes on with the claims of an ordinal that are being made anew, and finds
// out what those are made from that do not exist. Its pod is kept away until they
// do.
//
// It does so whatever the strategy is by now: a claim that was deleted to be made
// anew must never become an empty one.
func (r *Reconciler) renewClaims(ctx context.Context, s *scope, session *recreate.Session, ordinal int, m *member) error {
	templates := s.claimTemplates(ordinal)
	for i := range templates {
		name := volumes.ClaimName(templates[i].Name, podName(s.set.Name, ordinal))
		if !s.needsRenewal(name, m) {
			continue
		}
		result, err := session.Advance(ctx, s.claimToMake(&templates[i], ordinal, m))
		if err != nil {
			s.updating.Add(err)
			s.withhold(ordinal, m, name)
			continue
		}
		s.claims.Forget(name)
		if !result.Again.IsZero() {
			s.requeue.Within(max(result.Again.Sub(s.now), time.Millisecond))
		}
		if result.Action == claims.Wait {
			s.awaitRenewal(ordinal, m, name, result)
		}
	}
	return s.claims.Read(ctx, podName(s.set.Name, ordinal), templates)
}

// claimToMake returns the claim of a template as it would be made now.
func (s *scope) claimToMake(template *corev1.PersistentVolumeClaim, ordinal int, m *member) recreate.Claim {
	pod := client.ObjectKey{Namespace: s.set.Namespace, Name: podName(s.set.Name, ordinal)}
	claim := recreate.Claim{Template: newClaim(s.set, template, pod), Ordinal: ordinal}
	if m != nil {
		claim.Pod = m.Pod
	}
	claim.Foreign = s.claims.BelongsToOthers(s.claims.Get(claim.Template.Name))
	return claim
}

// needsRenewal reports whether there may be something to do for a claim.
func (s *scope) needsRenewal(name string, m *member) bool {
	found := s.claims.Get(name)
	switch {
	case found == nil:
		return m == nil || m.Status.Phase == corev1.PodPending
	case s.claims.BelongsToOthers(found):
		return volumes.RecordOf(found).Recreate != nil
	}
	busy, until := claims.IsBusy(found, s.set.Spec.VolumeClaimUpdateStrategy, s.now)
	if !until.IsZero() {
		s.requeue.Within(max(until.Sub(s.now), time.Second))
	}
	return busy
}

// withhold keeps a claim from being made, and its pod if there is none.
func (s *scope) withhold(ordinal int, m *member, claim string) {
	s.withheld.Insert(claim)
	if m == nil {
		s.gated.Insert(podName(s.set.Name, ordinal))
	}
}

// awaitRenewal keeps the pod of a claim away as long as that must be, and says what the
// claim waits for.
func (s *scope) awaitRenewal(ordinal int, m *member, claim string, result recreate.Result) {
	recreation := &volumes.Recreation{State: volumes.UnderWay, Reason: result.Reason, Message: result.Message}
	if result.Bound {
		recreation.State = "" // it has its volume, and its pod is to become ready
	}
	s.claims.Recreate(claim, recreation)
	if result.PodMayRun {
		return
	}
	s.withhold(ordinal, m, claim)
	if m != nil {
		return
	}
	blocker := inplace.Blocker{
		Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Namespace, Name: podName(s.set.Name, ordinal)}},
		State: inplace.UpdatingClaims, Reason: result.Reason, Message: "claim " + claim + ": " + result.Message,
	}
	if result.Reason == claims.ReasonRestoreMissing || result.Reason == claims.ReasonRestoreInvalid {
		blocker.State = inplace.Stuck
		s.unrestored = append(s.unrestored, blocker)
		return
	}
	s.away = append(s.away, blocker)
}

// judgeClaims finds out which claims of an ordinal are to be made anew.
func (r *Reconciler) judgeClaims(ctx context.Context, s *scope, session *recreate.Session, ordinal int, m *member) error {
	templates := s.claimTemplates(ordinal)
	for i := range templates {
		found := s.claims.Get(volumes.ClaimName(templates[i].Name, podName(s.set.Name, ordinal)))
		if found == nil || found.DeletionTimestamp != nil || s.claims.BelongsToOthers(found) || !session.MayRecreate(found, &templates[i]) {
			continue
		}
		claim := s.claimToMake(&templates[i], ordinal, m)
		claim.Failed = s.failedBefore(&templates[i], found.Name)
		recreation, err := session.Judge(ctx, claim, found)
		if err != nil {
			return err
		}
		if recreation != nil {
			s.claims.Recreate(found.Name, recreation)
		}
	}
	return nil
}

// failedBefore returns the name of another claim of a template that could not be made
// anew; empty if there is none. What fails for one pod is not tried with all.
func (s *scope) failedBefore(template *corev1.PersistentVolumeClaim, name string) string {
	failed, known := s.failed[template.Name]
	if !known {
		for _, ordinal := range s.ordinals {
			claim := s.claims.Get(volumes.ClaimName(template.Name, podName(s.set.Name, ordinal)))
			if claim != nil && claims.HasFailed(claim, template, s.set.Spec.VolumeClaimUpdateStrategy) {
				failed = append(failed, claim.Name)
			}
		}
		s.failed[template.Name] = failed
	}
	if i := slices.IndexFunc(failed, func(other string) bool { return other != name }); i >= 0 {
		return failed[i]
	}
	return ""
}

// thatAreUndone returns those templates of an ordinal for whose claims a user asks to
// have an earlier volume back.
func (s *scope) thatAreUndone(ordinal int, templates []corev1.PersistentVolumeClaim) []corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(slices.Clone(templates), func(template corev1.PersistentVolumeClaim) bool {
		claim := s.claims.Get(volumes.ClaimName(template.Name, podName(s.set.Name, ordinal)))
		return claim == nil || claim.Annotations[appsv1beta1.UndoRecreateAnnotation] == ""
	})
}
