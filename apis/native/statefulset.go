// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	appsv1 "k8s.io/api/apps/v1"
)

// HeldPartition is the partition of a StatefulSet that is held: Kubernetes updates no pod. Where
// its user has a partition, or pods are missing, the hold is the strategy OnDelete instead.
const HeldPartition int32 = 2147483647

// IsHeldByPartition reports whether the partition of a StatefulSet is that of a hold, and not
// its user's.
func IsHeldByPartition(set *appsv1.StatefulSet) bool {
	rolling := set.Spec.UpdateStrategy.RollingUpdate
	return set.Labels[HeldLabel] != "" && set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType &&
		rolling != nil && rolling.Partition != nil && *rolling.Partition == HeldPartition
}
