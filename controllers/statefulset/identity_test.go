// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"encoding/json"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestOrdinalOf(t *testing.T) {
	for pod, want := range map[string]int{
		"sample-0": 0, "sample-7": 7, "sample-10": 10, "sample-2147483647": 2147483647,
		"sample": -1, "sample-": -1, "sample-00": -1, "sample-01": -1, "sample-x-0": -1, "sample-0-0": -1,
		"sample--1": -1, "sample-+1": -1, "sample-1a": -1, "sample-0x1": -1, "sample-1e3": -1, "sample- 1": -1,
		"other-0": -1, "xsample-0": -1, "sample0": -1, "": -1,
		"sample-99999999999999999999": -1, "sample-٣": -1,
	} {
		g := NewWithT(t)
		ordinal, ok := ordinalOf("sample", pod)
		g.Expect(ok).To(Equal(want >= 0), "pod %q", pod)
		if ok {
			g.Expect(ordinal).To(Equal(want))
			g.Expect(podName("sample", ordinal)).To(Equal(pod))
		}
	}
}

// revisionOf returns the revision of a set's template.
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

func claimTemplate(name, size string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": "claim"}, Annotations: map[string]string{"note": "x"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}},
		},
	}
}

func withClaims(claims ...corev1.PersistentVolumeClaim) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { set.Spec.VolumeClaimTemplates = claims }
}

func TestNewPod(t *testing.T) {
	g := NewWithT(t)
	set := builders.StatefulSet("shop", "sample", "nginx:alpine").With(withClaims(claimTemplate("data", "1Gi"))).Build()
	set.UID, set.Spec.ServiceName = "uid-of-set", "web"
	template := &set.Spec.Template
	template.Annotations = map[string]string{"note": "hello"}
	template.Finalizers = []string{"example.io/hold"}
	template.Spec.Hostname, template.Spec.Subdomain = "mine", "mine"
	emptyDir := corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	template.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: emptyDir}, {Name: "tmp", VolumeSource: emptyDir}}
	revision := revisionOf(t, "sample-abc", *template)
	template.Spec.Containers[0].Image = "nginx:other" // what counts is the revision

	pod, err := newPod(set, revision, 7)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Namespace + "/" + pod.Name).To(Equal("shop/sample-7"))
	g.Expect(pod.Labels).To(Equal(map[string]string{
		"app":                                "sample",
		"statefulset.kubernetes.io/pod-name": "sample-7",
		"apps.kubernetes.io/pod-index":       "7",
		"controller-revision-hash":           "sample-abc",
	}))
	g.Expect(pod.Annotations).To(Equal(map[string]string{"note": "hello"}))
	g.Expect(pod.Finalizers).To(Equal([]string{"example.io/hold"}))
	g.Expect(metav1.IsControlledBy(pod, set)).To(BeTrue())
	g.Expect(pod.OwnerReferences[0].APIVersion).To(Equal("apps.kruise.io/v1beta1"))
	g.Expect(pod.OwnerReferences[0].Kind).To(Equal("StatefulSet"))
	g.Expect(pod.Spec.Hostname).To(Equal("sample-7"), "the identity is the set's, not the template's")
	g.Expect(pod.Spec.Subdomain).To(Equal("web"))
	g.Expect(pod.Spec.Containers[0].Image).To(Equal("nginx:alpine"))
	g.Expect(pod.Spec.ReadinessGates).To(Equal(template.Spec.ReadinessGates))
	g.Expect(pod.Spec.Volumes).To(ConsistOf(
		corev1.Volume{Name: "tmp", VolumeSource: emptyDir},
		corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-sample-7"},
		}},
	))

	pod.Labels["app"], pod.Annotations["note"] = "spoilt", "spoilt"
	again, err := newPod(set, revision, 7)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again.Labels).To(HaveKeyWithValue("app", "sample"), "the revision is not changed through its pods")
	g.Expect(again.Annotations).To(HaveKeyWithValue("note", "hello"))
}

func TestNewPodOfAnEmptyTemplate(t *testing.T) {
	g := NewWithT(t)
	set := builders.StatefulSet("shop", "sample", "nginx:alpine").Build()
	set.Spec.ServiceName = ""
	pod, err := newPod(set, revisionOf(t, "sample-abc", corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}}), 0)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(pod.Labels).To(HaveLen(3))
	g.Expect(pod.Spec.Subdomain).To(BeEmpty())
	g.Expect(pod.Spec.Volumes).To(BeEmpty())
}

func TestSetNamesOfAClaim(t *testing.T) {
	for claim, want := range map[string][]string{
		"data-sample-0":   {"sample"},
		"data-my-db-12":   {"my-db", "db"},
		"data-sample-x":   nil,
		"sample-0":        nil,
		"data":            nil,
		"":                nil,
		"a--b-3":          {"-b", "b"},
		"data-sample-0-0": {"sample-0", "0"},
	} {
		NewWithT(t).Expect(setNames(claim)).To(Equal(want), claim)
	}
}

func TestNewClaims(t *testing.T) {
	g := NewWithT(t)
	bare := claimTemplate("logs", "2Gi")
	bare.Labels, bare.Annotations = nil, nil
	set := builders.StatefulSet("shop", "sample", "nginx:alpine").With(withClaims(claimTemplate("data", "1Gi"), bare)).Build()

	// A revision that says nothing about claims, as those of OpenKruise.
	claims := newClaims(set, revisionOf(t, "sample-abc", set.Spec.Template), 3)
	g.Expect(claims).To(HaveLen(2))
	g.Expect(claims[0].Namespace + "/" + claims[0].Name).To(Equal("shop/data-sample-3"))
	g.Expect(claims[0].Labels).To(Equal(map[string]string{"app": "sample", "kind": "claim"}))
	g.Expect(claims[0].Annotations).To(Equal(map[string]string{"note": "x"}))
	g.Expect(claims[0].OwnerReferences).To(BeEmpty(), "claims outlive pod and set")
	g.Expect(claims[0].Spec).To(Equal(set.Spec.VolumeClaimTemplates[0].Spec))
	g.Expect(claims[1].Name).To(Equal("logs-sample-3"))
	g.Expect(claims[1].Labels).To(Equal(map[string]string{"app": "sample"}))
	g.Expect(set.Spec.Template.Labels).To(Equal(map[string]string{"app": "sample"}), "nothing is written into the spec")
	g.Expect(set.Spec.VolumeClaimTemplates[0].Labels).To(Equal(map[string]string{"kind": "claim"}))
}
