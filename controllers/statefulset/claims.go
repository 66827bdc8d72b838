// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// claimStatus counts the claims of the wanted pods that match their template.
func (r *Reconciler) claimStatus(ctx context.Context, s *scope) ([]appsv1beta1.VolumeClaimStatus, error) {
	var statuses []appsv1beta1.VolumeClaimStatus
	for i := range s.set.Spec.VolumeClaimTemplates {
		template := &s.set.Spec.VolumeClaimTemplates[i]
		status := appsv1beta1.VolumeClaimStatus{VolumeClaimName: template.Name}
		for _, ordinal := range s.ordinals {
			claim := &corev1.PersistentVolumeClaim{}
			key := client.ObjectKey{Namespace: s.set.Namespace, Name: workload.ClaimName(template.Name, podName(s.set.Name, ordinal))}
			if err := r.client.Get(ctx, key, claim); err != nil {
				if apierrors.IsNotFound(err) {
					continue
				}
				return nil, fmt.Errorf("get claim %s: %w", key, err)
			}
			countClaim(&status, claim, template)
		}
		statuses = append(statuses, status)
	}
	return statuses, nil
}

// countClaim counts a claim that is at least as large as its template wants, and
// of the same class. It is ready when its volume is as large, too.
func countClaim(status *appsv1beta1.VolumeClaimStatus, claim, template *corev1.PersistentVolumeClaim) {
	want := template.Spec.Resources.Requests[corev1.ResourceStorage]
	if !hasStorage(claim.Spec.Resources.Requests, want) || !sameClass(claim, template) {
		return
	}
	status.CompatibleReplicas++
	if hasStorage(claim.Status.Capacity, want) {
		status.CompatibleReadyReplicas++
	}
}

func hasStorage(resources corev1.ResourceList, want resource.Quantity) bool {
	has := resources[corev1.ResourceStorage]
	return has.Cmp(want) >= 0
}

// sameClass reports whether a claim has the class of its template. A template
// without a class takes what the cluster's default gave.
func sameClass(claim, template *corev1.PersistentVolumeClaim) bool {
	want := template.Spec.StorageClassName
	return want == nil || claim.Spec.StorageClassName != nil && *claim.Spec.StorageClassName == *want
}
