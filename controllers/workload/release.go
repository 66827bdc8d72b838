// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/podcache"
)

// IsStray reports whether a user took the labels from a pod by which its
// workload selects it: to look into it, undisturbed. One that is being deleted
// stays ours for the moment that is left to it, so that its name is free when it
// is gone.
//
// Revisions are not released: they say what pods were made from, whatever their
// labels. Without them, pods could not be changed in place.
func IsStray(pod *corev1.Pod, selector labels.Selector) bool {
	return pod.DeletionTimestamp == nil && !selector.Matches(labels.Set(pod.Labels))
}

// Release releases pods, and before each the claims that would go with it: what is
// done to the pod from now on must not cost its data. A pod that gets its labels
// back is adopted again.
func Release(ctx context.Context, c client.Client, owner Owner, strays []*corev1.Pod) Failures {
	failures := Failures{}
	for _, pod := range strays {
		err := client.IgnoreNotFound(release(ctx, c, owner, pod))
		if err != nil {
			failures.Add(fmt.Errorf("release pod %s/%s: %w", pod.Namespace, pod.Name, err))
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Released pod", "Pod", klog.KObj(pod))
	}
	return failures
}

func release(ctx context.Context, c client.Client, owner Owner, pod *corev1.Pod) error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := podcache.ByOwner(ctx, c, pod, claims); err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if err := PatchOwners(ctx, c, claim, WithoutOwner(pod.UID)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take claim %s from it: %w", claim.Name, err)
		}
	}
	reference := map[string]any{"ownerReferences": []any{WithoutOwner(owner.GetUID())}}
	return PatchMetadata(ctx, c, pod, PodReference(pod), reference)
}
