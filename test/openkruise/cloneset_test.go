// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package openkruise_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/openkruise/kruise-api/apps/v1alpha1"
	"github.com/openkruise/kruise-api/client/clientset/versioned"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// TestCloneSet is what a tool does with a CloneSet: it reads the strategy without asking
// whether it is there, scales, and moves the partition.
func TestCloneSet(t *testing.T) {
	theirs, ours := clients(t)
	sets := theirs.AppsV1alpha1().CloneSets(namespace)

	for name, test := range map[string]struct {
		create func(g Gomega, meta metav1.ObjectMeta)
		policy appsv1beta1.PodUpdateStrategyType
	}{
		"that it has created itself": {
			create: func(g Gomega, meta metav1.ObjectMeta) {
				set := &v1alpha1.CloneSet{ObjectMeta: meta, Spec: v1alpha1.CloneSetSpec{Selector: selector(), Template: template()}}
				created, err := sets.Create(t.Context(), set, metav1.CreateOptions{FieldValidation: strict})
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(*created.Spec.UpdateStrategy.Partition).To(Equal(intstr.FromInt32(0)))
			},
			policy: appsv1beta1.RecreatePodUpdateStrategyType,
		},
		"whose manifest is of the other version": {
			create: func(g Gomega, meta metav1.ObjectMeta) {
				set := &appsv1beta1.CloneSet{ObjectMeta: meta, Spec: appsv1beta1.CloneSetSpec{Selector: selector(), Template: template()}}
				set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateCloneSetStrategy{
					PodUpdatePolicy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
				}
				g.Expect(ours.Create(t.Context(), set)).To(Succeed())
			},
			policy: appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType,
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			meta := objectMeta(t, sets.Delete)
			test.create(g, meta)

			set := getCloneSet(t, theirs, meta.Name)
			strategy := set.Spec.UpdateStrategy
			g.Expect(*strategy.Partition).To(Equal(intstr.FromInt32(0)))
			g.Expect(*strategy.MaxUnavailable).To(Equal(intstr.FromString(v1alpha1.DefaultCloneSetMaxUnavailable)))
			g.Expect(*strategy.MaxSurge).To(Equal(intstr.FromInt32(0)))
			g.Expect(strategy.Type).NotTo(BeEmpty())
			g.Expect(*set.Spec.Replicas).To(Equal(int32(1)))
			g.Expect(*set.Spec.RevisionHistoryLimit).To(Equal(int32(10)))

			patch := []byte(`{"spec": {"replicas": 5, "updateStrategy": {"partition": 3}}}`)
			_, err := sets.Patch(t.Context(), meta.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldValidation: strict})
			g.Expect(err).NotTo(HaveOccurred())
			stored := &appsv1beta1.CloneSet{}
			g.Expect(ours.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: meta.Name}, stored)).To(Succeed())
			g.Expect(stored.GetReplicas()).To(Equal(int32(5)))
			g.Expect(stored.GetPartition()).To(Equal(int32(3)))
			g.Expect(stored.GetPodUpdatePolicy()).To(Equal(test.policy))

			expectScales(t, sets, meta.Name)
			g.Expect(*getCloneSet(t, theirs, meta.Name).Spec.Replicas).To(Equal(int32(2)))
		})
	}
}

// TestCloneSetThatIsWrittenWhole is what a tool does that has made a set and writes it back.
func TestCloneSetThatIsWrittenWhole(t *testing.T) {
	g := NewWithT(t)
	theirs, ours := clients(t)
	sets := theirs.AppsV1alpha1().CloneSets(namespace)
	set := &v1alpha1.CloneSet{ObjectMeta: objectMeta(t, sets.Delete), Spec: v1alpha1.CloneSetSpec{Selector: selector(), Template: template()}}
	set.Spec.UpdateStrategy.Type = v1alpha1.InPlaceIfPossibleCloneSetUpdateStrategyType
	_, err := sets.Create(t.Context(), set, metav1.CreateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())

	set = getCloneSet(t, theirs, set.Name)
	*set.Spec.Replicas = 5
	*set.Spec.UpdateStrategy.Partition = intstr.FromString("60%")
	set, err = sets.Update(t.Context(), set, metav1.UpdateOptions{FieldValidation: strict})
	g.Expect(err).NotTo(HaveOccurred())
	_, err = sets.Update(t.Context(), set, metav1.UpdateOptions{})
	g.Expect(err).NotTo(HaveOccurred())

	stored := &appsv1beta1.CloneSet{}
	g.Expect(ours.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: set.Name}, stored)).To(Succeed())
	g.Expect(stored.Generation).To(Equal(int64(2)), "to write what was read changes nothing")
	g.Expect(stored.GetReplicas()).To(Equal(int32(5)))
	g.Expect(stored.GetPartition()).To(Equal(int32(3)))
	g.Expect(stored.GetPodUpdatePolicy()).To(Equal(appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType))
}

func getCloneSet(t *testing.T, c *versioned.Clientset, name string) *v1alpha1.CloneSet {
	t.Helper()
	set, err := c.AppsV1alpha1().CloneSets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())

	return set
}
