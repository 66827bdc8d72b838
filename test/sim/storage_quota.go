// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a ResourceQuota leaves of storage.

const snapshotCount corev1.ResourceName = "count/volumesnapshots.snapshot.storage.k8s.io"

// chargeOf returns what an object counts against a quota.
func chargeOf(obj client.Object) corev1.ResourceList {
	switch typed := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		size, one := requestOf(typed), resource.MustParse("1")
		class := corev1.ResourceName(ptr.Deref(typed.Spec.StorageClassName, defaultClass) + ".storageclass.storage.k8s.io/")
		return corev1.ResourceList{
			corev1.ResourceRequestsStorage: size, corev1.ResourcePersistentVolumeClaims: one,
			class + corev1.ResourceRequestsStorage: size, class + corev1.ResourcePersistentVolumeClaims: one,
		}
	case *snapshotv1.VolumeSnapshot:
		return corev1.ResourceList{snapshotCount: resource.MustParse("1")}
	default:
		return nil
	}
}

// used returns what all that there is counts.
func (s *storage) used() corev1.ResourceList {
	used := corev1.ResourceList{}
	for _, obj := range s.world.server.objects {
		for name, charge := range chargeOf(obj) {
			sum := used[name]
			sum.Add(charge)
			used[name] = sum
		}
	}
	return used
}

// admit refuses what would exceed a quota.
func (s *storage) admit(obj client.Object) error {
	charges := chargeOf(obj)
	quotas := all[*corev1.ResourceQuota](s.world.server)
	if len(charges) == 0 || len(quotas) == 0 {
		return nil
	}
	used := s.used()
	for _, quota := range slices.Sorted(maps.Keys(quotas)) {
		for name, hard := range quotas[quota].Spec.Hard {
			charge, counts := charges[name]
			sum := used[name]
			sum.Add(charge)
			if counts && compare(sum, hard) > 0 {
				return apierrors.NewForbidden(resourceOf(kindOf(obj)), obj.GetName(), fmt.Errorf("exceeded quota: %s, limited: %s=%s", quota, name, hard.String()))
			}
		}
	}
	return nil
}

// countQuotas shows what is used.
func (s *storage) countQuotas() {
	for name, quota := range all[*corev1.ResourceQuota](s.world.server) {
		used := s.used()
		mutate(s.world.server, name, func(shown *corev1.ResourceQuota) {
			shown.Status.Hard, shown.Status.Used = quota.Spec.Hard, corev1.ResourceList{}
			for name := range quota.Spec.Hard {
				shown.Status.Used[name] = used[name]
			}
		})
	}
}
