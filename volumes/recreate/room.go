// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

// quota refuses what a ResourceQuota has no room for, once the claim that is there
// has given back its own.
//
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/
func (f PreflightFacts) quota() *Refusal {
	needed, freed := f.size(), f.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	more := needed.DeepCopy()
	more.Sub(freed)
	prefix := f.ClassName + ".storageclass.storage.k8s.io/"
	wants := corev1.ResourceList{corev1.ResourceRequestsStorage: more}
	if volumehelpers.GetPersistentVolumeClaimClass(f.Claim) == f.ClassName {
		wants[corev1.ResourceName(prefix+"requests.storage")] = more
	} else {
		wants[corev1.ResourceName(prefix+"requests.storage")] = needed
		wants[corev1.ResourceName(prefix+"persistentvolumeclaims")] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return f.exceeded(wants)
}

func (f PreflightFacts) snapshotQuota() *Refusal {
	const snapshots = 2 // the first one stays until the other is ready
	return f.exceeded(corev1.ResourceList{"count/volumesnapshots.snapshot.storage.k8s.io": *resource.NewQuantity(snapshots, resource.DecimalSI)})
}

// exceeded returns the refusal of the first quota that does not have what is wanted.
// Those with scopes are for some claims only, and left to the API server.
func (f PreflightFacts) exceeded(wants corev1.ResourceList) *Refusal {
	for _, quota := range f.Quotas {
		if len(quota.Spec.Scopes) > 0 || quota.Spec.ScopeSelector != nil {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(quota.Status.Hard)) {
			hard := quota.Status.Hard[name]
			want, limited := wants[name]
			if !limited || want.Sign() <= 0 {
				continue
			}
			used := quota.Status.Used[name]
			if total := used.DeepCopy(); isMore(total, want, hard) {
				return &Refusal{
					ReasonQuotaExceeded,
					fmt.Sprintf("ResourceQuota %s allows %s of %s, %s are used, and %s more are needed",
						quota.Name, hard.String(), name, used.String(), want.String()),
				}
			}
		}
	}
	return nil
}

func isMore(used, want, hard resource.Quantity) bool {
	used.Add(want)
	return used.Cmp(hard) > 0
}

// topology refuses a storage class that makes volumes only where the old one cannot be
// reached: nothing tells whether the snapshot can be.
func (f PreflightFacts) topology() *Refusal {
	if f.Class == nil || len(f.Class.AllowedTopologies) == 0 || f.Volume.Spec.NodeAffinity == nil || f.Volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	for _, allowed := range f.Class.AllowedTopologies {
		for _, reachable := range f.Volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
			if overlaps(allowed, reachable) {
				return nil
			}
		}
	}
	return &Refusal{
		ReasonTopologyDiffers,
		"storage class " + f.ClassName + " makes volumes only in other places (allowedTopologies) than where its volume " + f.Volume.Name + " can be reached (nodeAffinity)",
	}
}

// overlaps reports whether a place can be both.
func overlaps(allowed corev1.TopologySelectorTerm, reachable corev1.NodeSelectorTerm) bool {
	for _, expression := range allowed.MatchLabelExpressions {
		for _, requirement := range reachable.MatchExpressions {
			if requirement.Key == expression.Key && requirement.Operator == corev1.NodeSelectorOpIn &&
				!sets.New(requirement.Values...).HasAny(expression.Values...) {
				return false
			}
		}
	}
	return true
}
