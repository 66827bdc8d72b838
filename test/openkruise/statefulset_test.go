// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package openkruise_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openkruise/kruise-api/apps/v1alpha1"
	"github.com/openkruise/kruise-api/apps/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

var strict = metav1.FieldValidationStrict

// TestStatefulSet is what a tool does with a StatefulSet of v1beta1.
func TestStatefulSet(t *testing.T) {
	g := NewWithT(t)
	theirs, ours := clients(t)
	sets := theirs.AppsV1beta1().StatefulSets(namespace)
	set := &v1beta1.StatefulSet{
		ObjectMeta: objectMeta(t, sets.Delete), Spec: v1beta1.StatefulSetSpec{Selector: selector(), Template: template()},
	}

	_, err := sets.Create(t.Context(), set, metav1.CreateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	set, err = sets.Get(t.Context(), set.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	strategy := set.Spec.UpdateStrategy
	g.Expect(string(strategy.Type)).To(Equal("RollingUpdate"))
	g.Expect(*strategy.RollingUpdate.Partition).To(Equal(int32(0)))
	g.Expect(*strategy.RollingUpdate.MaxUnavailable).To(Equal(intstr.FromInt32(1)))
	g.Expect(*strategy.RollingUpdate.MinReadySeconds).To(Equal(int32(0)))
	g.Expect(strategy.RollingUpdate.PodUpdatePolicy).To(Equal(v1beta1.RecreatePodUpdateStrategyType))
	set.Spec.Replicas = ptr.To[int32](5)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](3)
	set, err = sets.Update(t.Context(), set, metav1.UpdateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	expectStored(t, ours, 5, 3)
	expectScales(t, sets, set.Name)
}

// TestOlderStatefulSet is what a tool does with a StatefulSet of v1alpha1.
func TestOlderStatefulSet(t *testing.T) {
	g := NewWithT(t)
	theirs, ours := clients(t)
	sets := theirs.AppsV1alpha1().StatefulSets(namespace)
	set := &v1alpha1.StatefulSet{
		ObjectMeta: objectMeta(t, sets.Delete), Spec: v1alpha1.StatefulSetSpec{Selector: selector(), Template: template()},
	}
	set.Spec.UpdateStrategy.Type = "RollingUpdate"

	_, err := sets.Create(t.Context(), set, metav1.CreateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	set, err = sets.Get(t.Context(), set.Name, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	strategy := set.Spec.UpdateStrategy
	g.Expect(*strategy.RollingUpdate.Partition).To(Equal(int32(0)))
	g.Expect(*strategy.RollingUpdate.MaxUnavailable).To(Equal(intstr.FromInt32(1)))
	g.Expect(*strategy.RollingUpdate.MinReadySeconds).To(Equal(int32(0)))
	g.Expect(strategy.RollingUpdate.PodUpdatePolicy).To(Equal(v1alpha1.RecreatePodUpdateStrategyType))
	set.Spec.Replicas = ptr.To[int32](5)
	set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](3)
	set, err = sets.Update(t.Context(), set, metav1.UpdateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	expectStored(t, ours, 5, 3)
	expectScales(t, sets, set.Name)
}

// expectStored holds that a tool has changed what it wanted to change, once.
func expectStored(t *testing.T, c client.Client, replicas, partition int32) {
	t.Helper()
	g := NewWithT(t)
	stored := &appsv1beta1.StatefulSet{}
	g.Expect(c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "web"}, stored)).To(Succeed())
	g.Expect(stored.GetReplicas()).To(Equal(replicas))
	g.Expect(stored.GetPartition()).To(Equal(partition))
	g.Expect(stored.Generation).To(Equal(int64(2)), "to write what was read changes nothing")
}
