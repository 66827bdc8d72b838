// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"math"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// rolling returns a set of 10 replicas in Parallel order with an update.
func rolling(update appsv1beta1.RollingUpdateStatefulSetStrategy) *appsv1beta1.StatefulSet {
	set := &appsv1beta1.StatefulSet{}
	set.Spec.Replicas = ptr.To[int32](10)
	set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	set.Spec.UpdateStrategy.RollingUpdate = &update

	return set
}

func TestDefaultsOfAnEmptySet(t *testing.T) {
	g := NewWithT(t)
	set := &appsv1beta1.StatefulSet{}

	g.Expect(set.GetReplicas()).To(Equal(int32(1)))
	g.Expect(set.GetRevisionHistoryLimit()).To(Equal(int32(10)))
	g.Expect(set.GetPodManagementPolicy()).To(Equal(appsv1.OrderedReadyPodManagement))
	g.Expect(set.GetUpdateStrategyType()).To(Equal(appsv1.RollingUpdateStatefulSetStrategyType))
	g.Expect(set.GetPodUpdatePolicy()).To(Equal(appsv1beta1.RecreatePodUpdateStrategyType))
	g.Expect(set.GetPartition()).To(BeZero())
	g.Expect(set.GetMaxUnavailable()).To(Equal(int32(1)))
	g.Expect(set.IsPaused()).To(BeFalse())
	g.Expect(set.GetMinReadySeconds()).To(BeZero())
	g.Expect(set.GetGracePeriod()).To(BeZero())
	g.Expect(set.GetOrdinalsStart()).To(BeZero())
	g.Expect(set.GetReservedOrdinals()).To(BeEmpty())
	g.Expect(set.GetOrdinals()).To(Equal([]int{0}))
	g.Expect(set.GetVolumeClaimUpdateStrategyType()).To(Equal(appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType))
	g.Expect(set.GetPersistentVolumeClaimRetentionPolicy()).To(Equal(appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType,
		WhenScaled:  appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType,
	}))

	_, limited := set.GetScaleMaxUnavailable()
	g.Expect(limited).To(BeFalse())
}

func TestValuesOfAFullSet(t *testing.T) {
	g := NewWithT(t)
	set := rolling(appsv1beta1.RollingUpdateStatefulSetStrategy{
		Partition:             ptr.To[int32](4),
		PodUpdatePolicy:       appsv1beta1.InPlaceOnlyPodUpdateStrategyType,
		Paused:                true,
		MinReadySeconds:       ptr.To[int32](30),
		InPlaceUpdateStrategy: &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: 90},
	})
	set.Spec.RevisionHistoryLimit = ptr.To[int32](0)
	set.Spec.ScaleStrategy = &appsv1beta1.StatefulSetScaleStrategy{MaxUnavailable: ptr.To(intstr.FromString("25%"))}
	set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.RecreateVolumeClaimUpdateStrategyType
	set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenScaled: appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType,
	}

	g.Expect(set.GetReplicas()).To(Equal(int32(10)))
	g.Expect(set.GetRevisionHistoryLimit()).To(BeZero())
	g.Expect(set.GetPodManagementPolicy()).To(Equal(appsv1.ParallelPodManagement))
	g.Expect(set.GetPodUpdatePolicy()).To(Equal(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
	g.Expect(set.GetPartition()).To(Equal(int32(4)))
	g.Expect(set.IsPaused()).To(BeTrue())
	g.Expect(set.GetMinReadySeconds()).To(Equal(int32(30)))
	g.Expect(set.GetGracePeriod()).To(Equal(90 * time.Second))
	g.Expect(set.GetVolumeClaimUpdateStrategyType()).To(Equal(appsv1beta1.RecreateVolumeClaimUpdateStrategyType))

	policy := set.GetPersistentVolumeClaimRetentionPolicy()
	g.Expect(policy.WhenDeleted).To(Equal(appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType))
	g.Expect(policy.WhenScaled).To(Equal(appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType))

	scale, limited := set.GetScaleMaxUnavailable()
	g.Expect(limited).To(BeTrue())
	g.Expect(scale).To(Equal(int32(2)))

	set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	g.Expect(set.GetUpdateStrategyType()).To(Equal(appsv1.OnDeleteStatefulSetStrategyType))
}

func TestGetMaxUnavailable(t *testing.T) {
	cases := map[string]struct {
		value    *intstr.IntOrString
		replicas int32
		policy   appsv1.PodManagementPolicyType
		want     int32
	}{
		"absent":                  {nil, 10, appsv1.ParallelPodManagement, 1},
		"number":                  {ptr.To(intstr.FromInt32(3)), 10, appsv1.ParallelPodManagement, 3},
		"number beyond replicas":  {ptr.To(intstr.FromInt32(30)), 10, appsv1.ParallelPodManagement, 30},
		"percent rounds down":     {ptr.To(intstr.FromString("39%")), 10, appsv1.ParallelPodManagement, 3},
		"percent at least 1":      {ptr.To(intstr.FromString("1%")), 10, appsv1.ParallelPodManagement, 1},
		"percent of no replicas":  {ptr.To(intstr.FromString("50%")), 0, appsv1.ParallelPodManagement, 1},
		"all":                     {ptr.To(intstr.FromString("100%")), 10, appsv1.ParallelPodManagement, 10},
		"all of very many":        {ptr.To(intstr.FromString("100%")), math.MaxInt32, appsv1.ParallelPodManagement, math.MaxInt32},
		"zero is malformed":       {ptr.To(intstr.FromInt32(0)), 10, appsv1.ParallelPodManagement, 1},
		"negative is malformed":   {ptr.To(intstr.FromInt32(-3)), 10, appsv1.ParallelPodManagement, 1},
		"words are malformed":     {ptr.To(intstr.FromString("half")), 10, appsv1.ParallelPodManagement, 1},
		"ordered goes one by one": {ptr.To(intstr.FromInt32(3)), 10, appsv1.OrderedReadyPodManagement, 1},
		"ordered by default":      {ptr.To(intstr.FromString("50%")), 10, "", 1},
	}

	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			set := rolling(appsv1beta1.RollingUpdateStatefulSetStrategy{MaxUnavailable: test.value})
			set.Spec.Replicas = &test.replicas
			set.Spec.PodManagementPolicy = test.policy

			NewWithT(t).Expect(set.GetMaxUnavailable()).To(Equal(test.want))
		})
	}
}

// TestMalformedCountsAsCareful reads what only an object that passed no schema
// can hold.
func TestMalformedCountsAsCareful(t *testing.T) {
	g := NewWithT(t)
	set := rolling(appsv1beta1.RollingUpdateStatefulSetStrategy{
		Partition:             ptr.To[int32](-1),
		PodUpdatePolicy:       "InPlace",
		MinReadySeconds:       ptr.To[int32](-1),
		InPlaceUpdateStrategy: &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: -1},
	})
	set.Spec.Replicas = ptr.To[int32](-1)
	set.Spec.RevisionHistoryLimit = ptr.To[int32](-1)
	set.Spec.PodManagementPolicy = "Serial"
	set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: -1}
	set.Spec.UpdateStrategy.Type = "Sometimes"
	set.Spec.VolumeClaimUpdateStrategy.Type = "Sometimes"

	g.Expect(set.GetReplicas()).To(BeZero())
	g.Expect(set.GetRevisionHistoryLimit()).To(BeZero())
	g.Expect(set.GetPodManagementPolicy()).To(Equal(appsv1.OrderedReadyPodManagement))
	g.Expect(set.GetUpdateStrategyType()).To(Equal(appsv1.OnDeleteStatefulSetStrategyType))
	g.Expect(set.GetPodUpdatePolicy()).To(Equal(appsv1beta1.RecreatePodUpdateStrategyType))
	g.Expect(set.GetPartition()).To(BeZero())
	g.Expect(set.GetMinReadySeconds()).To(BeZero())
	g.Expect(set.GetGracePeriod()).To(BeZero())
	g.Expect(set.GetOrdinalsStart()).To(BeZero())
	g.Expect(set.GetOrdinals()).To(BeEmpty())
	g.Expect(set.GetVolumeClaimUpdateStrategyType()).To(Equal(appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType))

	set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = ptr.To[int32](3600)
	g.Expect(set.GetMinReadySeconds()).To(Equal(int32(300)))
}
