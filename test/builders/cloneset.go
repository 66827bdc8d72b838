// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package builders

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// CloneSetBuilder builds a CloneSet.
type CloneSetBuilder struct {
	set appsv1beta1.CloneSet
}

// CloneSet starts a set of three pods with one container "main", updated in
// place, one at a time, with the readiness gate. Its update strategy is nested.
func CloneSet(namespace, name, image string) *CloneSetBuilder {
	labels := map[string]string{"app": name}
	b := &CloneSetBuilder{set: appsv1beta1.CloneSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1beta1.CloneSetSpec{
			Replicas: ptr.To[int32](3),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ReadinessGates:                []corev1.PodReadinessGate{{ConditionType: appsv1beta1.InPlaceUpdateReady}},
					Containers:                    []corev1.Container{{Name: "main", Image: image}},
					TerminationGracePeriodSeconds: ptr.To[int64](5),
				},
			},
			UpdateStrategy: appsv1beta1.CloneSetUpdateStrategy{
				Type: appsv1beta1.RollingUpdateCloneSetUpdateStrategyType,
				RollingUpdate: &appsv1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
				},
			},
		},
	}}

	return b.MaxUnavailable(1)
}

// Build returns the set.
func (b *CloneSetBuilder) Build() *appsv1beta1.CloneSet {
	return b.set.DeepCopy()
}

// Replicas sets the number of pods.
func (b *CloneSetBuilder) Replicas(n int32) *CloneSetBuilder {
	b.set.Spec.Replicas = ptr.To(n)
	return b
}

// MaxUnavailable sets the budget.
func (b *CloneSetBuilder) MaxUnavailable(n int32) *CloneSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(n))
	return b
}

// MaxSurge sets how many pods may exist beyond replicas.
func (b *CloneSetBuilder) MaxSurge(n int32) *CloneSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(n))
	return b
}

// Partition sets the partition.
func (b *CloneSetBuilder) Partition(n int32) *CloneSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.FromInt32(n))
	return b
}

// Policy sets podUpdatePolicy.
func (b *CloneSetBuilder) Policy(policy appsv1beta1.PodUpdateStrategyType) *CloneSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = policy
	return b
}

// Paused pauses updates.
func (b *CloneSetBuilder) Paused() *CloneSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.Paused = true
	return b
}

// GracePeriod sets how long a pod stays out of service before it is changed.
func (b *CloneSetBuilder) GracePeriod(seconds int32) *CloneSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{GracePeriodSeconds: seconds}
	return b
}

// PodsToDelete names the pods that go first when the set shrinks.
func (b *CloneSetBuilder) PodsToDelete(names ...string) *CloneSetBuilder {
	b.set.Spec.ScaleStrategy.PodsToDelete = names
	return b
}

// Ungated removes the readiness gate from the template. New pods have it nevertheless,
// unless the set recreates its pods.
func (b *CloneSetBuilder) Ungated() *CloneSetBuilder {
	b.set.Spec.Template.Spec.ReadinessGates = nil
	return b
}

// With changes the set in a way that has no builder.
func (b *CloneSetBuilder) With(change func(*appsv1beta1.CloneSet)) *CloneSetBuilder {
	change(&b.set)
	return b
}
