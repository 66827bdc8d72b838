// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
)

func TestDaemonSetNumbers(t *testing.T) {
	number := func(n int32) *intstr.IntOrString { return ptr.To(intstr.FromInt32(n)) }
	percent := func(text string) *intstr.IntOrString { return ptr.To(intstr.FromString(text)) }
	const nodes = 10
	for name, test := range map[string]struct {
		rolling                       RollingUpdateDaemonSetStrategy
		unavailable, surge, partition int
	}{
		"nothing said":              {RollingUpdateDaemonSetStrategy{}, 1, 0, 0},
		"a number":                  {RollingUpdateDaemonSetStrategy{MaxUnavailable: number(3), Partition: number(4)}, 3, 0, 4},
		"unavailable is rounded up": {RollingUpdateDaemonSetStrategy{MaxUnavailable: percent("11%")}, 2, 0, 0},
		"partition is rounded down": {RollingUpdateDaemonSetStrategy{Partition: percent("19%")}, 1, 0, 1},
		"more than there are":       {RollingUpdateDaemonSetStrategy{Partition: number(99)}, 1, 0, 10},
		"a surge":                   {RollingUpdateDaemonSetStrategy{MaxSurge: percent("11%")}, 0, 2, 0},
		"no surge":                  {RollingUpdateDaemonSetStrategy{MaxSurge: number(0)}, 1, 0, 0},
		"Surging":                   {RollingUpdateDaemonSetStrategy{RollingUpdateType: SurgingDaemonSetRollingUpdateType}, 0, 1, 0},
		"Surging, and how many":     {RollingUpdateDaemonSetStrategy{RollingUpdateType: SurgingDaemonSetRollingUpdateType, MaxSurge: number(3)}, 0, 3, 0},
		"in place there is none":    {RollingUpdateDaemonSetStrategy{RollingUpdateType: InPlaceOnlyDaemonSetRollingUpdateType, MaxSurge: number(3)}, 1, 0, 0},
		"one of none":               {RollingUpdateDaemonSetStrategy{MaxUnavailable: number(0)}, 1, 0, 0},
		"what is no number":         {RollingUpdateDaemonSetStrategy{MaxUnavailable: percent("all"), Partition: percent("all")}, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			set := &DaemonSet{Spec: DaemonSetSpec{UpdateStrategy: DaemonSetUpdateStrategy{RollingUpdate: &test.rolling}}}
			got := []int{set.GetMaxUnavailable(nodes), set.GetMaxSurge(nodes), set.GetPartition(nodes)}
			NewWithT(t).Expect(got).To(Equal([]int{test.unavailable, test.surge, test.partition}))
		})
	}
}

func TestDaemonSetBurst(t *testing.T) {
	g := NewWithT(t)
	set := &DaemonSet{}
	g.Expect(set.GetBurst(10)).To(Equal(250))
	for value, want := range map[string]int{"20%": 2, "19%": 1, "9%": 1, "0%": 1} {
		set.Spec.BurstReplicas = ptr.To(intstr.FromString(value))
		g.Expect(set.GetBurst(10)).To(Equal(want), value)
	}
}

// The field counts where it is there; the annotation is its name in v1alpha1.
func TestDaemonSetPartitionedScaling(t *testing.T) {
	g := NewWithT(t)
	set := &DaemonSet{}
	g.Expect(set.HasPartitionedScaling()).To(BeFalse())
	metav1.SetMetaDataAnnotation(&set.ObjectMeta, ProgressiveCreatePodAnnotation, "true")
	g.Expect(set.HasPartitionedScaling()).To(BeTrue())
	set.Spec.ScaleStrategy = &DaemonSetScaleStrategy{}
	g.Expect(set.HasPartitionedScaling()).To(BeFalse())
	set.Spec.ScaleStrategy.PartitionedScaling = true
	g.Expect(set.HasPartitionedScaling()).To(BeTrue())
}
