// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/apis/native"
)

// A workload that is released has the strategy that its hold has put aside.
func TestReleased(t *testing.T) {
	g := NewWithT(t)
	held := metav1.ObjectMeta{Name: "web", Annotations: map[string]string{native.HeldPartitionAnnotation: "2", native.HeldMaxUnavailableAnnotation: "50%"}}

	deployment, err := Released(Deployment, &appsv1.Deployment{ObjectMeta: held, Spec: appsv1.DeploymentSpec{Paused: true, MinReadySeconds: 3}})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(deployment).To(Equal(&appsv1.Deployment{ObjectMeta: held, Spec: appsv1.DeploymentSpec{MinReadySeconds: 3}}))

	set := &appsv1.StatefulSet{ObjectMeta: held}
	set.Spec.UpdateStrategy.Type = appsv1.OnDeleteStatefulSetStrategyType
	released, err := Released(StatefulSet, set)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(released).To(HaveField("Spec.UpdateStrategy.Type", appsv1.RollingUpdateStatefulSetStrategyType))
	g.Expect(released).To(HaveField("Spec.UpdateStrategy.RollingUpdate.Partition", ptr.To[int32](2)))
	g.Expect(set.Spec.UpdateStrategy.Type).To(Equal(appsv1.OnDeleteStatefulSetStrategyType), "the one that was given stays")
}

// A StatefulSet that is held by its partition has kept the other numbers, and one that had no
// numbers has none again.
func TestReleasedOfAPartition(t *testing.T) {
	parted := func(unavailable *intstr.IntOrString) appsv1.StatefulSetUpdateStrategy {
		return appsv1.StatefulSetUpdateStrategy{
			Type:          appsv1.RollingUpdateStatefulSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(native.HeldPartition), MaxUnavailable: unavailable},
		}
	}
	one, half := ptr.To(intstr.FromInt32(1)), ptr.To(intstr.FromString("50%"))
	for name, test := range map[string]struct {
		kept        map[string]string
		unavailable *intstr.IntOrString
		want        *appsv1.RollingUpdateStatefulSetStrategy
	}{
		"a partition":                 {map[string]string{native.HeldPartitionAnnotation: "2"}, half, &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2), MaxUnavailable: half}},
		"a partition and the default": {map[string]string{native.HeldPartitionAnnotation: "2"}, one, &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](2), MaxUnavailable: one}},
		"no numbers":                  {nil, one, nil},
		"no numbers, on a server that knows no maxUnavailable": {nil, nil, nil},
		"no numbers, and one that was written meanwhile":       {nil, half, &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: half}},
	} {
		t.Run(name, func(t *testing.T) {
			set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{native.HeldLabel: native.Held}, Annotations: test.kept}}
			set.Spec.UpdateStrategy = parted(test.unavailable)
			released, err := Released(StatefulSet, set)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			NewWithT(t).Expect(released).To(HaveField("Spec.UpdateStrategy.Type", appsv1.RollingUpdateStatefulSetStrategyType))
			NewWithT(t).Expect(released).To(HaveField("Spec.UpdateStrategy.RollingUpdate", Equal(test.want)))
		})
	}
}
