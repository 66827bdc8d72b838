// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1alpha1 "github.com/insitu-dev/insitu/apis/apps/v1alpha1"
	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// claimTemplates returns a claim template of a class; none if it is empty.
func claimTemplates(class, size string) []corev1.PersistentVolumeClaim {
	claim := corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
	if class != "" {
		claim.Spec.StorageClassName = &class
	}

	return []corev1.PersistentVolumeClaim{claim}
}

func TestClaimGuard(t *testing.T) {
	g := NewWithT(t)
	c := newClient(t)
	helm := newHelm(t)
	helm("install", "claims", "charts/insitu", "--create-namespace", "--set=holdPolicies.install=false,crds.install=false,rbac.create=false",
		"--set=fullnameOverride=guarded")
	defer helm("uninstall", "claims", "--no-hooks")
	for name, grows := range map[string]*bool{"fixed": ptr.To(false), "silent": nil, "growing": ptr.To(true)} {
		class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: "example.io/none", AllowVolumeExpansion: grows}
		g.Expect(c.Create(t.Context(), class)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(t.Context(), class) })
	}
	set := func(name, class string) *appsv1beta1.StatefulSet {
		set := workload()
		set.Name = name
		set.Spec.VolumeClaimTemplates = claimTemplates(class, "1Gi")
		set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
		g.Expect(c.Create(t.Context(), set)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(t.Context(), set) })

		return set
	}
	// update asks what the server says of another size, and of another change with it.
	update := func(set *appsv1beta1.StatefulSet, class, size string, also func(*appsv1beta1.StatefulSet)) error {
		changed := set.DeepCopy()
		changed.Spec.VolumeClaimTemplates = claimTemplates(class, size)
		if also != nil {
			also(changed)
		}

		return c.Update(t.Context(), changed, client.DryRunAll)
	}
	fixed := set("fixed", "fixed")
	g.Eventually(func() error { return update(fixed, "fixed", "2Gi", nil) }, "1m").Should(MatchError(And(
		ContainSubstring("StorageClass fixed does not allow volumes to grow"),
		ContainSubstring("data for 2Gi"), ContainSubstring("OnDelete"))))
	g.Expect(update(set("silent", "silent"), "silent", "1025Mi", nil)).To(MatchError(ContainSubstring("StorageClass silent")), "no is the default of a class")
	g.Expect(update(fixed, "fixed", "2Gi", func(s *appsv1beta1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
	})).To(MatchError(ContainSubstring("StorageClass fixed")))

	clones := &appsv1alpha1.CloneSet{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "clones"}}
	clones.Spec.Selector, clones.Spec.Template = workload().Spec.Selector, workload().Spec.Template
	clones.Spec.VolumeClaimTemplates = claimTemplates("fixed", "1Gi")
	clones.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
	g.Expect(c.Create(t.Context(), clones)).To(Succeed())
	t.Cleanup(func() { _ = c.Delete(t.Context(), clones) })
	clones.Spec.VolumeClaimTemplates = claimTemplates("fixed", "2Gi")
	g.Expect(c.Update(t.Context(), clones, client.DryRunAll)).To(MatchError(ContainSubstring("StorageClass fixed")), "of a CloneSet, in its other version")

	onDelete := func(s *appsv1beta1.StatefulSet) {
		s.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
	}
	for name, err := range map[string]error{
		"the same size":                  update(fixed, "fixed", "1024Mi", nil),
		"a smaller size":                 update(fixed, "fixed", "500Mi", nil),
		"new claims only":                update(fixed, "fixed", "2Gi", onDelete),
		"no pods":                        update(fixed, "fixed", "2Gi", func(s *appsv1beta1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](0) }),
		"a class that lets volumes grow": update(set("growing", "growing"), "growing", "2Gi", nil),
		"a class that is not there":      update(set("missing", "missing"), "missing", "2Gi", nil),
		"the default class, whichever":   update(set("unnamed", ""), "", "2Gi", nil),
		"recreated claims of another size": update(fixed, "fixed", "2Gi", func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.RecreateVolumeClaimUpdateStrategyType
		}),
	} {
		g.Expect(err).NotTo(HaveOccurred(), name)
	}
}
