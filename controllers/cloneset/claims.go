// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
)

// Claims are never deleted here: the garbage collector does that, by their owner
// references. A claim has one controller:
//
//	                         claims are reused    claims are not reused
//	its pod stays            the set              the set
//	its pod is deleted       the set              the pod
//	there is no such pod     the set              a pod that does not exist
//
// The garbage collector deletes a claim as soon as none of its owners exists. No
// claim of a pod that stays is lost:
//
//   - A pod becomes the owner of its claims only when it is being deleted, or
//     right before we delete it, and after the set was read from the API server.
//   - That there is no such pod is read from the API server, too.
//   - A pod that stays after all gives its claims back, before anything else is
//     created or deleted.
//   - A pod that is released takes its claims with it: they have no owner then.

// settleClaims gives every claim of the set the owner that it should have. going
// are the pods that are about to be deleted. It returns the names of the pods whose
// claims could not be changed: they are not to be deleted now.
func (r *Reconciler) settleClaims(ctx context.Context, s *scope, going []*corev1.Pod) (sets.Set[string], error) {
	var changes []workload.OwnerChange
	known := sets.New[string]()
	isGoing := sets.New[string]()
	for _, pod := range slices.Concat(going, s.leaving) {
		isGoing.Insert(pod.Name)
	}
	for _, pod := range slices.Concat(s.Pods, s.Strays) {
		known.Insert(pod.Name)
	}
	// Those of pods that are to go come first: after three failures, the others wait.
	pods := slices.Concat(s.outgoing, s.leaving)
	for _, m := range s.members {
		pods = append(pods, m.Pod)
	}
	for _, pod := range pods {
		found, err := r.changesOf(ctx, s, pod, isGoing.Has(pod.Name))
		if err != nil {
			return nil, err
		}
		changes = append(changes, found...)
	}
	leftovers, err := r.leftovers(ctx, s, known)
	if err != nil {
		return nil, err
	}
	return r.setClaimOwners(ctx, s, append(changes, leftovers...))
}

// handOver gives the claims of pods that are about to be recreated to them, and returns the
// names of those for which that failed.
func (r *Reconciler) handOver(ctx context.Context, s *scope, going []*corev1.Pod) (sets.Set[string], error) {
	var changes []workload.OwnerChange
	for _, pod := range going {
		found, err := r.changesOf(ctx, s, pod, true)
		if err != nil {
			return nil, err
		}
		changes = append(changes, found...)
	}
	return r.setClaimOwners(ctx, s, changes)
}

// setClaimOwners writes changes, and returns the names of the pods of which that failed.
func (r *Reconciler) setClaimOwners(ctx context.Context, s *scope, changes []workload.OwnerChange) (sets.Set[string], error) {
	gated, failures, err := r.Pods.SetClaimOwners(ctx, r.Live, s.Owner, changes)
	s.Scaling.Join(failures)
	return gated, err
}

// changesOf returns the changes that the claims of a pod need. Those of a pod that the set
// has not made are not the set's.
func (r *Reconciler) changesOf(ctx context.Context, s *scope, pod *corev1.Pod, isGoing bool) ([]workload.OwnerChange, error) {
	if !isPodName(s.set.Name, pod.Name) {
		return nil, nil
	}
	desired := s.Owner.Reference()
	if isGoing && !s.set.ReusesClaims() {
		desired = podOwner(pod.Name, pod.UID)
	}
	var changes []workload.OwnerChange
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil || volume.PersistentVolumeClaim.ClaimName != volumes.ClaimName(volume.Name, pod.Name) {
			continue
		}
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: pod.Namespace, Name: volume.PersistentVolumeClaim.ClaimName}
		if err := r.Client.Get(ctx, key, claim); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, fmt.Errorf("get claim %s: %w", key, err)
		}
		if references := ownerPatch(s.set, claim, desired); claim.DeletionTimestamp == nil && len(references) > 0 {
			changes = append(changes, workload.OwnerChange{Claim: claim, Pod: pod.Name, References: references, Gates: true})
		}
	}
	return changes, nil
}

// leftovers returns the changes of claims that have no pod and are not kept for
// the next one: those of a pod that was deleted while the manager was not running.
func (r *Reconciler) leftovers(ctx context.Context, s *scope, pods sets.Set[string]) ([]workload.OwnerChange, error) {
	if s.set.ReusesClaims() {
		return nil, nil
	}
	claims, err := r.claimsOfSet(ctx, s)
	if err != nil {
		return nil, err
	}
	var changes []workload.OwnerChange
	for _, claim := range claims {
		id, ok := idOf(s.set.Name, claim.Name)
		pod := podName(s.set.Name, id)
		if !ok || pods.Has(pod) || claim.DeletionTimestamp != nil || volumes.IsAway(claim, s.Now) {
			continue
		}
		// A cache that is behind says of no pod that it is gone.
		if err := r.Live.Get(ctx, client.ObjectKey{Namespace: claim.Namespace, Name: pod}, &corev1.Pod{}); !apierrors.IsNotFound(err) {
			if err != nil {
				return nil, fmt.Errorf("find out whether pod %s/%s of claim %s is gone: %w", claim.Namespace, pod, claim.Name, err)
			}
			continue
		}
		// No UID of a pod looks like this.
		absent := podOwner(pod, "gone-"+claim.UID)
		changes = append(changes, workload.OwnerChange{Claim: claim, Pod: pod, References: ownerPatch(s.set, claim, absent), Gates: true})
	}
	return changes, nil
}

// claimsOfSet returns the claims that the set controls and has made.
func (r *Reconciler) claimsOfSet(ctx context.Context, s *scope) ([]*corev1.PersistentVolumeClaim, error) {
	list := &corev1.PersistentVolumeClaimList{}
	if err := podcache.ByOwner(ctx, r.Client, s.set, list); err != nil {
		return nil, err
	}
	var claims []*corev1.PersistentVolumeClaim
	for i := range list.Items {
		if _, made := list.Items[i].Labels[appsv1beta1.CloneSetInstanceIDKey]; made {
			claims = append(claims, &list.Items[i])
		}
	}
	return claims, nil
}

// ownerPatch returns the entries of a strategic merge patch that make desired the
// controller of a claim; none if it is, or if another owner is. The set and pods
// of the claim's name make way for it.
func ownerPatch(set *appsv1beta1.CloneSet, claim *corev1.PersistentVolumeClaim, desired *metav1.OwnerReference) []any {
	var references []any
	for i := range claim.OwnerReferences {
		owner := &claim.OwnerReferences[i]
		isPod := owner.APIVersion == "v1" && owner.Kind == "Pod" && isPodName(set.Name, owner.Name)
		switch {
		case owner.UID == desired.UID:
			return nil
		case isPod, owner.UID == set.UID:
			references = append(references, workload.WithoutOwner(owner.UID))
		case owner.Controller != nil && *owner.Controller, ownerOf(set).IsEarlier(owner):
			return nil
		}
	}
	return append(references, desired)
}

func podOwner(name string, uid types.UID) *metav1.OwnerReference {
	pod := &metav1.ObjectMeta{Name: name, UID: uid}
	owner := metav1.NewControllerRef(pod, corev1.SchemeGroupVersion.WithKind("Pod"))
	// To block the deletion of the pod would need access to pods/finalizers, and
	// gain nothing.
	owner.BlockOwnerDeletion = nil
	return owner
}

// release releases the strays, with their claims: what is done to a pod from now on
// must not cost its data.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	var ready []*corev1.Pod
	for _, pod := range s.Strays {
		if err := r.releaseClaims(ctx, s, pod); err != nil {
			s.Updating.Add(fmt.Errorf("release pod %s/%s: %w", pod.Namespace, pod.Name, err))
			continue
		}
		ready = append(ready, pod)
	}
	s.Updating.Join(workload.Release(ctx, r.Client, s.Owner, ready))
	return nil
}

func (r *Reconciler) releaseClaims(ctx context.Context, s *scope, pod *corev1.Pod) error {
	claims, err := r.claimsOfSet(ctx, s)
	if err != nil {
		return err
	}
	for _, claim := range workload.ClaimsOf(pod, claims) {
		err := workload.PatchOwners(ctx, r.Client, claim, workload.WithoutOwner(s.set.UID))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take claim %s from the set: %w", claim.Name, err)
		}
	}
	return nil
}
