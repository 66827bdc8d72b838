// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestIDOf(t *testing.T) {
	for name, want := range map[string]string{
		"sample-x7k2p": "x7k2p", "data-sample-x7k2p": "x7k2p", "sample-00000": "00000",
		"sample": "", "sample-": "", "sample-x7k2": "", "sample-x7k2p9": "", "sample-X7K2P": "", "sample-x7k.p": "",
		"xsample-x7k2p": "", "sample-x-x7k2p": "", "samplex7k2p": "", "x7k2p": "", "": "",
	} {
		g := NewWithT(t)
		id, ok := idOf("sample", name)
		g.Expect(ok).To(Equal(want != ""), name)
		if ok {
			g.Expect(id).To(Equal(want), name)
		}
	}
	NewWithT(t).Expect(isPodName("sample", "sample-x7k2p")).To(BeTrue())
	NewWithT(t).Expect(isPodName("sample", "data-sample-x7k2p")).To(BeFalse(), "a claim's name is no pod's")
}

// revisionOf returns the revision of a template.
func revisionOf(t *testing.T, name string, template corev1.PodTemplateSpec) *history.Revision {
	t.Helper()
	g := NewWithT(t)
	raw, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	g.Expect(err).NotTo(HaveOccurred())
	h, err := history.Read([]appsv1.ControllerRevision{{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: runtime.RawExtension{Raw: raw},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	return h.Get(name)
}

func TestNewPod(t *testing.T) {
	g := NewWithT(t)
	set := builders.CloneSet("shop", "sample", "nginx:alpine").Build()
	set.UID = "uid-of-set"
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{Name: "data", Labels: map[string]string{"kind": "claim"}, Annotations: map[string]string{"note": "x"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}}
	made, err := newPod(set, revisionOf(t, "sample-6f7d9", set.Spec.Template), set.Spec.VolumeClaimTemplates, "x7k2p")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.Pod.Namespace + "/" + made.Pod.Name).To(Equal("shop/sample-x7k2p"))
	g.Expect(made.Pod.Labels).To(Equal(map[string]string{
		"app":                                 "sample",
		"apps.kruise.io/cloneset-instance-id": "x7k2p",
		"controller-revision-hash":            "sample-6f7d9",
		"pod-template-hash":                   "6f7d9",
	}))
	g.Expect(metav1.IsControlledBy(made.Pod, set)).To(BeTrue())
	g.Expect(made.Pod.OwnerReferences[0].Kind).To(Equal("CloneSet"))
	g.Expect(made.Pod.Spec.Volumes).To(ConsistOf(corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-sample-x7k2p"},
	}}))
	g.Expect(made.Claims).To(HaveLen(1))
	claim := made.Claims[0]
	g.Expect(claim.Name).To(Equal("data-sample-x7k2p"))
	g.Expect(claim.Labels).To(Equal(map[string]string{"app": "sample", "kind": "claim", "apps.kruise.io/cloneset-instance-id": "x7k2p"}))
	g.Expect(claim.Annotations).To(Equal(map[string]string{"note": "x"}))
	g.Expect(metav1.IsControlledBy(claim, set)).To(BeTrue())
	g.Expect(claim.Spec).To(Equal(set.Spec.VolumeClaimTemplates[0].Spec))
}

func TestIDsAreGivenOnce(t *testing.T) {
	g := NewWithT(t)
	rolls := []string{"aaaaa", "bbbbb", "aaaaa", "ccccc"}
	ids := &idSource{free: []string{"fffff"}, taken: sets.New("bbbbb"), random: func(int) string {
		next := rolls[0]
		rolls = rolls[1:]
		return next
	}}
	g.Expect([]string{ids.next(), ids.next(), ids.next()}).To(Equal([]string{"fffff", "aaaaa", "ccccc"}))
}
