// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// With the pods 0, 2 and 4, a partition of 2 updates 4 only.
func TestPartitionCountsPodsWhereOrdinalsAreReserved(t *testing.T) {
	g := NewWithT(t)
	s := reference()
	s.wider.ordinals.reserved = []intstr.IntOrString{intstr.FromInt32(1), intstr.FromString("3")}
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To[int32](2) })
	w.ask(revisionNamed("b"))
	w.settle()
	g.Expect(w.failure).NotTo(HaveOccurred(), w.story.String())
	found := map[string]string{}
	for name, pod := range all[*corev1.Pod](w.server) {
		found[name] = pod.Spec.Containers[0].Image
	}
	g.Expect(found).To(Equal(map[string]string{"sample-0": "app:a", "sample-2": "app:a", "sample-4": bImage}))
}

// Two of three pods are to serve whatever the user does to the ordinals.
func TestMovedOrdinalsStayWithinTheBudget(t *testing.T) {
	t.Skip("finding: " + openFindings[0].subject)
	g := NewWithT(t)
	s := reference()
	s.maxUnavailable = 1
	w, err := newScenario(s)
	g.Expect(err).NotTo(HaveOccurred())
	w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Ordinals = &appsv1beta1.StatefulSetOrdinals{Start: 3} })
	for range 60 {
		w.step()
		available := 0
		for _, pod := range all[*corev1.Pod](w.server) {
			if w.isAvailable(pod) {
				available++
			}
		}
		g.Expect(available).To(BeNumerically(">=", 2), w.story.String())
	}
}
