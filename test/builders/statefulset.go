// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// StatefulSetBuilder builds a StatefulSet.
type StatefulSetBuilder struct {
	set appsv1beta1.StatefulSet
}

// StatefulSet starts a set of three pods with one container "main", created in
// parallel and updated in place, one at a time, with the readiness gate.
func StatefulSet(namespace, name, image string) *StatefulSetBuilder {
	labels := map[string]string{"app": name}
	return &StatefulSetBuilder{set: appsv1beta1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1beta1.StatefulSetSpec{
			Replicas:            ptr.To[int32](3),
			ServiceName:         name,
			PodManagementPolicy: appsv1.ParallelPodManagement,
			Selector:            &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}},
					Containers:                    []corev1.Container{{Name: "main", Image: image}},
					TerminationGracePeriodSeconds: ptr.To[int64](5),
				},
			},
			UpdateStrategy: appsv1beta1.StatefulSetUpdateStrategy{
				Type: appsv1.RollingUpdateStatefulSetStrategyType,
				RollingUpdate: &appsv1beta1.RollingUpdateStatefulSetStrategy{
					PodUpdatePolicy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
				},
			},
		},
	}}
}

// Build returns the set.
func (b *StatefulSetBuilder) Build() *appsv1beta1.StatefulSet {
	return b.set.DeepCopy()
}

// Replicas sets the number of pods.
func (b *StatefulSetBuilder) Replicas(n int32) *StatefulSetBuilder {
	b.set.Spec.Replicas = ptr.To(n)
	return b
}

// MaxUnavailable sets the budget.
func (b *StatefulSetBuilder) MaxUnavailable(n int32) *StatefulSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(n))
	return b
}

// Partition sets the partition.
func (b *StatefulSetBuilder) Partition(n int32) *StatefulSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(n)
	return b
}

// Policy sets podUpdatePolicy.
func (b *StatefulSetBuilder) Policy(policy appsv1beta1.PodUpdateStrategyType) *StatefulSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
	return b
}

// OrderedReady makes pods one after the other.
func (b *StatefulSetBuilder) OrderedReady() *StatefulSetBuilder {
	b.set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	return b
}

// GracePeriod sets how long a pod stays out of service before it is changed.
func (b *StatefulSetBuilder) GracePeriod(seconds int32) *StatefulSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	return b
}

// Ungated removes the readiness gate from the template. New pods have it nevertheless,
// unless podUpdatePolicy is ReCreate.
func (b *StatefulSetBuilder) Ungated() *StatefulSetBuilder {
	b.set.Spec.Template.Spec.ReadinessGates = nil
	return b
}

// With changes the set in a way that has no builder.
func (b *StatefulSetBuilder) With(change func(*appsv1beta1.StatefulSet)) *StatefulSetBuilder {
	change(&b.set)
	return b
}
