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

// DaemonSetBuilder builds a DaemonSet.
type DaemonSetBuilder struct {
	set appsv1beta1.DaemonSet
}

// DaemonSet starts a set with one container "main" on every node, updated in place, one node at
// a time. The template does not list the readiness gate, which new pods have nevertheless.
func DaemonSet(namespace, name, image string) *DaemonSetBuilder {
	labels := map[string]string{"app": name}
	b := &DaemonSetBuilder{set: appsv1beta1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1beta1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers:                    []corev1.Container{{Name: "main", Image: image}},
					TerminationGracePeriodSeconds: ptr.To[int64](5),
				},
			},
			UpdateStrategy: appsv1beta1.DaemonSetUpdateStrategy{
				Type: appsv1.RollingUpdateDaemonSetStrategyType,
				RollingUpdate: &appsv1beta1.RollingUpdateDaemonSetStrategy{
					RollingUpdateType: appsv1beta1.InPlaceIfPossibleDaemonSetRollingUpdateType,
				},
			},
		},
	}}

	return b.MaxUnavailable(1)
}

// Build returns the set.
func (b *DaemonSetBuilder) Build() *appsv1beta1.DaemonSet {
	return b.set.DeepCopy()
}

// MaxUnavailable sets of how many nodes the pod may be unavailable.
func (b *DaemonSetBuilder) MaxUnavailable(n int32) *DaemonSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(n))
	return b
}

// Surge recreates pods, and lets so many nodes run the new one beside the old one.
func (b *DaemonSetBuilder) Surge(value string) *DaemonSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable = nil
	b.set.Spec.UpdateStrategy.RollingUpdate.MaxSurge = ptr.To(intstr.Parse(value))
	return b.Type(appsv1beta1.StandardDaemonSetRollingUpdateType)
}

// Partition sets of how many nodes the pods stay at the old revision: "2" or "50%".
func (b *DaemonSetBuilder) Partition(value string) *DaemonSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.Parse(value))
	return b
}

// Type sets rollingUpdateType.
func (b *DaemonSetBuilder) Type(of appsv1beta1.DaemonSetRollingUpdateType) *DaemonSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.RollingUpdateType = of
	return b
}

// Paused pauses updates.
func (b *DaemonSetBuilder) Paused() *DaemonSetBuilder {
	b.set.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To(true)
	return b
}

// MinReadySeconds sets how long a pod must be ready to be available.
func (b *DaemonSetBuilder) MinReadySeconds(seconds int32) *DaemonSetBuilder {
	b.set.Spec.MinReadySeconds = seconds
	return b
}

// NodeSelector selects the nodes that run a pod.
func (b *DaemonSetBuilder) NodeSelector(label, value string) *DaemonSetBuilder {
	b.set.Spec.Template.Spec.NodeSelector = map[string]string{label: value}
	return b
}

// With changes the set in a way that has no builder.
func (b *DaemonSetBuilder) With(change func(*appsv1beta1.DaemonSet)) *DaemonSetBuilder {
	change(&b.set)
	return b
}
