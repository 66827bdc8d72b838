// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/podcache"
)

// isStray reports whether somebody took the labels from a pod by which the set
// selects it: to look into it, undisturbed. One that is being deleted stays ours
// for the moment that is left to it, so that its name is free when it is gone.
//
// Revisions are not released: they say what pods were made from, whatever their
// labels. Without them, pods could not be changed in place.
func isStray(pod *corev1.Pod, selector labels.Selector) bool {
	return pod.DeletionTimestamp == nil && !selector.Matches(labels.Set(pod.Labels))
}

// release lets the strays go. They were not observed as pods of the set, so none
// of them is counted or changed, also if its release fails. A pod that gets its
// labels back is adopted again.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	for _, pod := range s.strays {
		err := r.releasePod(ctx, s, pod)
		switch {
		case client.IgnoreNotFound(err) == nil:
			ctrl.LoggerFrom(ctx).Info("Released pod", "Pod", klog.KObj(pod))
		case apierrors.IsConflict(err):
			s.requeue(conflictDelay)
		default:
			s.updateErrs = append(s.updateErrs, fmt.Errorf("release pod %s/%s: %w", pod.Namespace, pod.Name, err))
		}
	}
	return nil
}

// releasePod removes our owner reference from a pod, and before it those of its
// claims to it: what is done to the pod from now on must not cost its data.
func (r *Reconciler) releasePod(ctx context.Context, s *scope, pod *corev1.Pod) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := podcache.ByOwner(ctx, r.client, pod, claims); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		err := r.patchMetadata(ctx, claim, claim.DeepCopy(), map[string]any{"ownerReferences": []any{withoutOwner(pod.UID)}})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take claim %s from it: %w", claim.Name, err)
		}
	}
	return r.patchMetadata(ctx, pod, podReference(pod), map[string]any{"ownerReferences": []any{withoutOwner(s.set.UID)}})
}

// explainTaken says what to do about a pod that has the name of one to create
// and does not belong to the set; other errors stay as they are.
func explainTaken(err error, name string) error {
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	return fmt.Errorf("the name is taken by a pod that is not part of the set; delete pod %s, "+
		"or give it the labels of spec.selector to have it taken over: %w", name, err)
}
