// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
)

// Claims are never deleted here. persistentVolumeClaimRetentionPolicy is carried
// out by owner references, and the garbage collector deletes what they say:
//
//	                      whenScaled Retain    whenScaled Delete
//	whenDeleted Retain    none                 condemned: the pod, others: none
//	whenDeleted Delete    the set              condemned: the pod, others: the set
//
// The garbage collector deletes a claim as soon as none of its owners exists: a
// reference to a pod that is gone is a deletion on its way. No claim of a wanted
// pod is lost, because:
//
//   - A pod reference is only written to a claim whose ordinal is not wanted, by
//     a set that was read from the API server just before.
//   - It is written before its pod is deleted. A manager that is killed between
//     the two leaves a claim whose owner lives.
//   - Ordinals that are wanted again lose the reference before anything is
//     created or deleted, whichever pod it names: one that still runs, is
//     terminating, or is gone. While that is not done, the pod is neither made
//     nor deleted by us.
//   - The garbage collector deletes with the owner references that it saw as the
//     condition. So it either came first, and the pod waits until the claim is
//     gone and gets a new one, or it does not delete.
//
// What is not ours to prevent is a scale-up that the manager does not see before the
// last pod of the ordinal is gone: the claim was rightly its pod's until then.
//
// The references have controller true, as Kubernetes writes them: so claims are
// found by podcache.OwnerIndex, and no other controller takes them. Only that to
// the set blocks the deletion of its owner; for pods, that would need access to
// pods/finalizers and gain nothing.

// ensureClaimOwners makes the owners of all claims those that the policy wants.
// What fails with one claim holds up its pod only.
func (r *Reconciler) ensureClaimOwners(ctx context.Context, s *scope) error {
	changes, err := r.ownerChanges(ctx, s)
	if err != nil {
		return err
	}
	gated, failures, err := r.Pods.SetClaimOwners(ctx, r.Live, s.Owner, changes)
	s.gated = s.gated.Union(gated)
	s.Scaling.Join(failures)
	return err
}

// ownerChanges compares every claim of the set with what the policy wants.
func (r *Reconciler) ownerChanges(ctx context.Context, s *scope) ([]workload.OwnerChange, error) {
	var changes []workload.OwnerChange
	pods := byOrdinal(s.members)
	for _, ordinal := range s.ordinals {
		found, err := r.claimsOfOrdinal(ctx, s, ordinal, pods[ordinal])
		if err != nil {
			return nil, err
		}
		changes = r.appendChanges(changes, s, ordinal, found, nil)
	}
	for _, m := range s.condemned {
		found, err := r.claimsOfOrdinal(ctx, s, m.ordinal, m)
		if err != nil {
			return nil, err
		}
		mounted := workload.ClaimsOf(m.Pod, slices.Clone(found))
		others := slices.DeleteFunc(found, func(claim *corev1.PersistentVolumeClaim) bool { return slices.Contains(mounted, claim) })
		changes = r.appendChanges(changes, s, m.ordinal, mounted, m.Pod)
		changes = r.appendChanges(changes, s, m.ordinal, others, nil)
	}
	return r.appendLeftovers(ctx, changes, s)
}

// appendChanges appends the changes that the claims of an ordinal need.
// condemned is the pod that a scale-down removes, nil if the claims stay.
func (r *Reconciler) appendChanges(
	changes []workload.OwnerChange, s *scope, ordinal int, claims []*corev1.PersistentVolumeClaim, condemned *corev1.Pod,
) []workload.OwnerChange {
	desired := claimOwner(s.set, condemned)
	for _, claim := range claims {
		change, other := compareOwners(s.set, ordinal, claim, desired)
		if len(change.References) > 0 {
			changes = append(changes, change)
		}
		// Once for every spec: nothing else tells what was told before.
		if other != nil && desired != nil && s.set.Status.ObservedGeneration != s.set.Generation {
			r.Recorder.Eventf(s.set, claim, corev1.EventTypeWarning, appsv1beta1.ReasonConflictingController, workload.ActionUpdate,
				"claim %s is controlled by %s %s: persistentVolumeClaimRetentionPolicy has no effect on it", claim.Name, other.Kind, other.Name)
		}
	}
	return changes
}

// appendLeftovers appends the changes of claims that the set owns and should
// not. Their pods may be gone since an earlier scale-down.
func (r *Reconciler) appendLeftovers(ctx context.Context, changes []workload.OwnerChange, s *scope) ([]workload.OwnerChange, error) {
	if claimOwner(s.set, nil) != nil {
		return changes, nil
	}
	owned := &corev1.PersistentVolumeClaimList{}
	if err := podcache.ByOwner(ctx, r.Client, s.set, owned); err != nil {
		return nil, err
	}
	seen := sets.New[types.UID]()
	for _, change := range changes {
		seen.Insert(change.Claim.UID)
	}
	for i := range owned.Items {
		claim := &owned.Items[i]
		if !seen.Has(claim.UID) && claim.DeletionTimestamp == nil {
			changes = append(changes, workload.OwnerChange{Claim: claim, References: []any{workload.WithoutOwner(s.set.UID)}})
		}
	}
	return changes, nil
}

// claimsOfOrdinal reads the claims that were made for an ordinal, for its pod m
// as it is or, if there is none, as it will be. Those that are being deleted are
// past help.
func (r *Reconciler) claimsOfOrdinal(ctx context.Context, s *scope, ordinal int, m *member) ([]*corev1.PersistentVolumeClaim, error) {
	revision := s.revisionFor(ordinal)
	if m != nil {
		revision = s.Revisions.Of(m.Pod)
	}
	templates := s.set.Spec.VolumeClaimTemplates
	if revision != nil {
		templates = slices.Concat(templates, revision.Claims)
	}
	var claims []*corev1.PersistentVolumeClaim
	seen := sets.New[string]()
	for i := range templates {
		key := client.ObjectKey{Namespace: s.set.Namespace, Name: volumes.ClaimName(templates[i].Name, podName(s.set.Name, ordinal))}
		if seen.Has(key.Name) {
			continue
		}
		seen.Insert(key.Name)
		claim := &corev1.PersistentVolumeClaim{}
		err := r.Client.Get(ctx, key, claim)
		switch {
		case err == nil && claim.DeletionTimestamp == nil:
			claims = append(claims, claim)
		case client.IgnoreNotFound(err) != nil:
			return nil, fmt.Errorf("get claim %s: %w", key, err)
		}
	}
	return claims, nil
}

// claimOwner returns the owner that a claim should have, nil for none. condemned
// is the pod that uses the claim, if a scale-down removes it.
func claimOwner(set *appsv1beta1.StatefulSet, condemned *corev1.Pod) *metav1.OwnerReference {
	policy := set.GetPersistentVolumeClaimRetentionPolicy()
	switch {
	case condemned != nil && policy.WhenScaled == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType:
		owner := metav1.NewControllerRef(condemned, corev1.SchemeGroupVersion.WithKind("Pod"))
		owner.BlockOwnerDeletion = nil
		return owner
	case policy.WhenDeleted == appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType:
		return ownerOf(set).Reference()
	default:
		return nil
	}
}

// compareOwners returns the change that a claim needs, without references if it
// needs none, and the owner that keeps it from being ours, if there is one.
func compareOwners(
	set *appsv1beta1.StatefulSet, ordinal int, claim *corev1.PersistentVolumeClaim, desired *metav1.OwnerReference,
) (workload.OwnerChange, *metav1.OwnerReference) {
	change := workload.OwnerChange{Claim: claim, Pod: podName(set.Name, ordinal)}
	var other *metav1.OwnerReference
	isOwned := false
	for i := range claim.OwnerReferences {
		owner := &claim.OwnerReferences[i]
		isPod := owner.APIVersion == "v1" && owner.Kind == "Pod" && owner.Name == change.Pod
		switch {
		case desired != nil && owner.UID == desired.UID:
			isOwned = ptr.Deref(owner.Controller, false)
		case isPod, owner.UID == set.UID:
			change.References = append(change.References, workload.WithoutOwner(owner.UID))
			change.Gates = change.Gates || isPod
		case ownerOf(set).IsEarlier(owner), ptr.Deref(owner.Controller, false):
			other = owner
		}
	}
	if desired != nil && !isOwned && other == nil {
		change.References = append(change.References, desired)
		change.Gates = change.Gates || desired.UID != set.UID
	}
	return change, other
}

// ungatedScale returns a plan without the pods that are gated.
func (s *scope) ungatedScale(plan scalePlan) scalePlan {
	return scalePlan{
		create: slices.DeleteFunc(plan.create, func(ordinal int) bool { return s.gated.Has(podName(s.set.Name, ordinal)) }),
		remove: slices.DeleteFunc(plan.remove, func(m *member) bool { return s.gated.Has(m.Name) }),
	}
}

// handOver returns the pods that must not be deleted now; their claims have been seen to.
func (s *scope) handOver(context.Context, []*corev1.Pod) (sets.Set[string], error) {
	return s.gated, nil
}
