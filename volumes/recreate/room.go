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

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// quota refuses what a ResourceQuota has no room for, once the claim that is there
// has given back its own.
//
// Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/
func (f PreflightFacts) quota() *Refusal { return f.quotaFor(f.ClassName, f.size()) }

// quotaFor is quota for a new claim of a class and a size.
func (f PreflightFacts) quotaFor(class string, needed resource.Quantity) *Refusal {
	more := needed.DeepCopy()
	more.Sub(f.Claim.Spec.Resources.Requests[corev1.ResourceStorage])
	prefix := class + ".storageclass.storage.k8s.io/"
	// A quota that was lowered below what is used refuses also what needs no more.
	wants := corev1.ResourceList{
		corev1.ResourceRequestsStorage: more, corev1.ResourcePersistentVolumeClaims: resource.Quantity{}, "count/persistentvolumeclaims": resource.Quantity{},
	}
	if volumehelpers.GetPersistentVolumeClaimClass(f.Claim) == class {
		wants[corev1.ResourceName(prefix+"requests.storage")] = more
		wants[corev1.ResourceName(prefix+"persistentvolumeclaims")] = resource.Quantity{}
	} else {
		wants[corev1.ResourceName(prefix+"requests.storage")] = needed
		wants[corev1.ResourceName(prefix+"persistentvolumeclaims")] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return f.exceeded(wants)
}

// trialQuota refuses what a ResourceQuota has no room for beside the claim that is there.
func (f PreflightFacts) trialQuota() *Refusal {
	needed, one := f.size(), *resource.NewQuantity(1, resource.DecimalSI)
	prefix := f.ClassName + ".storageclass.storage.k8s.io/"
	return f.exceeded(corev1.ResourceList{
		corev1.ResourceRequestsStorage: needed, corev1.ResourcePersistentVolumeClaims: one,
		corev1.ResourceName(prefix + "requests.storage"):       needed,
		corev1.ResourceName(prefix + "persistentvolumeclaims"): one,
		"count/persistentvolumeclaims":                         one,
	})
}

func (f PreflightFacts) snapshotQuota() *Refusal {
	snapshots := int64(2) // the first one stays until the other is ready
	if f.Strategy.GetRecreate().Trial == appsv1beta1.NoRecreateTrial {
		snapshots = 1
	}
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
			if !limited {
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
