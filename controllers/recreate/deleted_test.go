// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package recreate

import (
	"encoding/json"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// heldIn returns a volume that is held for a claim of a workload.
func heldIn(g Gomega, name, namespace string, owner types.UID) *corev1.PersistentVolume {
	state, err := json.Marshal(appsv1beta1.HeldVolumeState{Namespace: namespace, Claim: "data-db-0", OwnerUID: owner})
	g.Expect(err).NotTo(HaveOccurred())
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
		Name: name, UID: types.UID(name), Finalizers: []string{"kubernetes.io/pv-protection", appsv1beta1.HeldVolumeFinalizer},
		Labels:      map[string]string{appsv1beta1.ClaimNamespaceLabel: namespace, appsv1beta1.ClaimLabel: "data-db-0"},
		Annotations: map[string]string{appsv1beta1.HeldVolumeStateKey: string(state)},
	}}
}

// The volumes of sets that are gone lose the finalizer, those of all others keep it.
func TestUnprotect(t *testing.T) {
	for namespace, free := range map[string][]string{"": {"gone", "elsewhere"}, "default": {"gone"}, "empty": nil} {
		g, ctx := NewWithT(t), t.Context()
		scheme := runtime.NewScheme()
		g.Expect(corev1.AddToScheme(scheme)).To(Succeed())
		g.Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
		taken := heldIn(g, "taken-over", "default", "set-0")
		taken.Annotations[appsv1beta1.TakeOverAnnotation] = "set-1"
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
			&appsv1beta1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", UID: "set-1"}},
			heldIn(g, "gone", "default", "set-0"), heldIn(g, "there", "default", "set-1"), taken,
			heldIn(g, "elsewhere", "other", "set-1"), heldIn(g, "by-names", "default", ""),
		).Build()
		g.Expect(New(c, c, nil).Unprotect(ctx, namespace)).To(Succeed())

		list := &corev1.PersistentVolumeList{}
		g.Expect(c.List(ctx, list)).To(Succeed())
		for i := range list.Items {
			pv := &list.Items[i]
			is := slices.Contains(pv.Finalizers, appsv1beta1.HeldVolumeFinalizer)
			g.Expect(is).To(Equal(!slices.Contains(free, pv.Name)), "namespace %q: finalizer of %s", namespace, pv.Name)
			g.Expect(pv.Finalizers).To(ContainElement("kubernetes.io/pv-protection"), "that of others")
			g.Expect(pv.Annotations).To(HaveKey(appsv1beta1.HeldVolumeStateKey), "a user can still hand it over")
		}
	}
}
