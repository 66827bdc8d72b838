// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/recreate"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
	claims "github.com/insitu-dev/insitu/volumes/recreate"
)

// renewClaims goes on with the claims of an ordinal that are being recreated, and finds
// out what those are made from that do not exist. No others than those that it clears are
// made, and the pod is kept away until it can have its claims.
//
// It does so whatever the strategy is by now: a claim that was deleted to be
// recreated must never become an empty one.
func (r *Reconciler) renewClaims(ctx context.Context, s *scope, session *recreate.Session, ordinal int, m *member) error {
	templates := s.templatesOf(ordinal, m)
	for i := range templates {
		name := volumes.ClaimName(templates[i].Name, podName(s.set.Name, ordinal))
		needs, err := s.needsRenewal(ctx, session, &templates[i], name, m)
		if err != nil {
			s.failRenewal(ordinal, m, name, err)
		}
		if !needs {
			continue
		}
		result, err := session.Advance(ctx, s.claimToMake(&templates[i], ordinal, m))
		s.claims.Forget(name)
		if err != nil {
			s.failRenewal(ordinal, m, name, err)
			continue
		}
		if !result.Again.IsZero() {
			s.Requeue.Within(max(result.Again.Sub(s.Now), time.Millisecond))
		}
		if result.Action == claims.Wait {
			s.awaitRenewal(ordinal, m, name, result)
		} else {
			s.cleared.Insert(name)
		}
	}
	return s.claims.Read(ctx, podName(s.set.Name, ordinal), templates)
}

// templatesOf returns the claim templates of an ordinal as it is wanted, and those that
// only its pod has, which waits for their claims.
func (s *scope) templatesOf(ordinal int, m *member) []corev1.PersistentVolumeClaim {
	templates := s.claimTemplates(ordinal)
	if m == nil || m.Status.Phase != corev1.PodPending {
		return templates
	}
	revision := s.Revisions.Of(m.Pod)
	if revision == nil {
		return templates
	}
	named := sets.New[string]()
	for i := range templates {
		named.Insert(templates[i].Name)
	}
	return slices.Concat(templates, slices.DeleteFunc(slices.Clone(revision.Claims), func(template corev1.PersistentVolumeClaim) bool {
		return named.Has(template.Name)
	}))
}

// claimToMake returns the claim of a template as it would be made now.
func (s *scope) claimToMake(template *corev1.PersistentVolumeClaim, ordinal int, m *member) recreate.Claim {
	pod := client.ObjectKey{Namespace: s.set.Namespace, Name: podName(s.set.Name, ordinal)}
	claim := recreate.Claim{Template: newClaim(s.set, template, pod), Ordinal: ordinal}
	if m != nil {
		claim.Pod = m.Pod
	}
	claim.Found = s.claims.Get(claim.Template.Name)
	claim.Failed = s.failedBefore(template, claim.Template.Name)
	claim.Foreign = s.claims.BelongsToOthers(claim.Found)
	return claim
}

// needsRenewal reports whether there may be something to do for a claim. One that does not
// exist, and of which nothing says what it is made from, is cleared to be made.
func (s *scope) needsRenewal(
	ctx context.Context, session *recreate.Session, template *corev1.PersistentVolumeClaim, name string, m *member,
) (bool, error) {
	found := s.claims.Get(name)
	switch {
	case found == nil && m != nil && m.Status.Phase != corev1.PodPending:
		return false, nil
	case found == nil:
		isNew, err := session.IsNew(ctx, name, template)
		if err == nil && isNew {
			s.cleared.Insert(name)
		}
		return err == nil && !isNew, err
	case s.claims.BelongsToOthers(found) || session.NotPermitted:
		return volumes.RecordOf(found).Recreate != nil, nil
	}
	busy, until := claims.IsBusy(found, s.set.Spec.VolumeClaimUpdateStrategy, s.Now)
	busy = busy || session.HasGone(found)
	if !until.IsZero() {
		s.Requeue.Within(max(until.Sub(s.Now), time.Second))
	}
	if !busy && found.Status.Phase == corev1.ClaimPending {
		isNew, err := session.IsNew(ctx, name, template)
		return err == nil && !isNew, err // it may have been made by another client
	}
	if !busy && found.Status.Phase == corev1.ClaimBound && (m == nil || m.Status.Phase == corev1.PodPending) {
		return session.Supplants(ctx, found)
	}
	return busy, nil
}

// failRenewal keeps the pod of a claim away of which it is not known what it is made from.
func (s *scope) failRenewal(ordinal int, m *member, name string, err error) {
	s.withhold(ordinal, m)
	s.claims.Recreate(name, s.unanswered(err))
}

// unanswered returns what is known of a claim when a request has failed: a recreation
// may be under way, so its pod waits. The request is made again.
func (s *scope) unanswered(err error) *volumes.Recreation {
	s.Updating.Add(err)
	return &volumes.Recreation{State: volumes.UnderWay, Reason: claims.ReasonClaimRecreating, Message: err.Error()}
}

// needsUser are the reasons why a claim waits for a user.
var needsUser = sets.New(
	claims.ReasonRestoreMissing, claims.ReasonRestoreInvalid, claims.ReasonVolumeNotRestored, claims.ReasonHeldForAnother, claims.ReasonUndoRefused,
)

// withhold keeps the pod of an ordinal from being made.
func (s *scope) withhold(ordinal int, m *member) {
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
	if !result.PodMayRun {
		s.withhold(ordinal, m)
	}
	blocker := inplace.Blocker{
		Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Namespace, Name: podName(s.set.Name, ordinal)}},
		State: inplace.UpdatingClaims, Reason: result.Reason, Message: "claim " + claim + ": " + result.Message,
	}
	switch {
	case needsUser.Has(result.Reason):
		blocker.State = inplace.Stuck
		s.waiting = append(s.waiting, blocker)
	case m == nil && !result.PodMayRun:
		s.away = append(s.away, blocker)
	case !result.Bound && (m == nil || m.Status.Phase == corev1.PodPending):
		s.waiting = append(s.waiting, blocker)
	}
}

// changingPods is how many wanted pods are missing whose claims are being changed: those
// that are away for their claims, and those that went for another reason, or were
// released, before their claims were done.
func (s *scope) changingPods() int {
	pods := sets.New[string]()
	for _, blocker := range s.away {
		pods.Insert(blocker.Pod.Name)
	}
	there := byOrdinal(s.members)
	for _, ordinal := range s.ordinals {
		if name := podName(s.set.Name, ordinal); there[ordinal] == nil && changesForATime(s.claimSteps[name]) {
			pods.Insert(name)
		}
	}
	return pods.Len()
}

// changesForATime reports whether one of the claims is being changed, and the change is
// overdue at a known time. Other pods wait for such a change. They do not wait for a
// volume that cannot grow because a released pod uses it: it is not known for how long.
func changesForATime(claims volumes.Claims) bool {
	return slices.ContainsFunc(claims, func(step volumes.Step) bool {
		return step.State == volumes.UnderWay && !step.Foreign && !step.Until.IsZero()
	})
}

// judgeClaims finds out which claims of an ordinal are to be recreated.
func (r *Reconciler) judgeClaims(ctx context.Context, s *scope, session *recreate.Session, ordinal int, m *member) {
	templates := s.claimTemplates(ordinal)
	for i := range templates {
		found := s.claims.Get(volumes.ClaimName(templates[i].Name, podName(s.set.Name, ordinal)))
		if found == nil || found.DeletionTimestamp != nil || s.claims.BelongsToOthers(found) || !session.MayRecreate(found, &templates[i]) {
			continue
		}
		recreation, err := session.Judge(ctx, s.claimToMake(&templates[i], ordinal, m), found)
		if err != nil {
			recreation = s.unanswered(err)
		}
		if recreation != nil {
			s.claims.Recreate(found.Name, recreation)
		}
	}
}

// failedBefore returns the name of another claim of a template that could not be
// recreated; empty if there is none. What fails for one pod is not tried with all.
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

// nameHeldUndos says of claims whose earlier volumes are asked back why that waits: their
// pods are not to be moved.
func (s *scope) nameHeldUndos(ordinal int) {
	for _, template := range s.thatAreUndone(ordinal, s.claimTemplates(ordinal)) {
		name := podName(s.set.Name, ordinal)
		s.waiting = append(s.waiting, inplace.Blocker{
			Pod:   &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.set.Namespace, Name: name}},
			State: inplace.Waiting, Reason: claims.ReasonUndoWaits,
			Message: "claim " + volumes.ClaimName(template.Name, name) + ": annotation " + appsv1beta1.UndoRecreateAnnotation +
				" is acted on when the update is not paused, not held by the partition and not OnDelete",
		})
	}
}
