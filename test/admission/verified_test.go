// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trust writes which images were verified, as a pipeline would.
func trust(t *testing.T, images ...string) {
	t.Helper()
	data := map[string]string{}
	for _, image := range images {
		_, digest, _ := strings.Cut(image, "@sha256:")
		data[digest] = image
	}
	list := &corev1.ConfigMap{}
	list.Namespace, list.Name, list.Data = "image-policy", "verified-images", data
	NewWithT(t).Expect(clientOf(t, "").Update(t.Context(), list)).To(Succeed())
}

// signed are the requests that a verifier of images must judge, and those that it must
// leave alone, whichever of the samples is installed.
func signed(t *testing.T, namespace, refusal string, trust func(*testing.T, ...string)) {
	t.Helper()
	admin, insitu := clientOf(t, ""), operator(t)
	trust(t, imageA, imageB)
	a, b, x := state{imageA, "100m", imageB}, state{imageB, "100m", imageB}, state{imageX, "100m", imageB}
	pod := newPod(t, namespace, "first", a, true)
	await(t, func() error { return setImage(t, admin, pod, imageX, client.DryRunAll) }, refusal)

	t.Run("creation", func(t *testing.T) {
		g := NewWithT(t)
		hasVolumes := servesVolumesFromImages(t, admin)
		for _, image := range []string{imageX, "nginx:alpine"} {
			g.Expect(creation(t, admin, namespace, image)).To(MatchError(ContainSubstring(refusal)))
			g.Expect(creation(t, admin, namespace, imageB, initContainer(image))).To(MatchError(ContainSubstring(refusal)))
			if hasVolumes {
				g.Expect(creation(t, admin, namespace, imageB, volume(image))).To(MatchError(ContainSubstring(refusal)))
			}
		}
		g.Expect(creation(t, admin, namespace, imageB, initContainer(imageA), volume(imageA))).To(Succeed())
	})
	t.Run("an image that is not trusted, by Insitu", func(t *testing.T) {
		mustBeDenied(t, insitu, pod, a, x, refusal)
		mustBeDenied(t, insitu, newPod(t, namespace, "without-gate", a, false), a, x, refusal)
		mustBeDenied(t, insitu, pod, a, state{imageA, "100m", imageX}, refusal)
		mustBeDenied(t, insitu, newPod(t, namespace, "without-gate-either", a, false), a, state{imageA, "100m", imageX}, refusal)
	})
	t.Run("an image that is trusted, by Insitu", func(t *testing.T) {
		mustBeMade(t, insitu, newPod(t, namespace, "trusted", a, false), a, b)
		mustBeMade(t, insitu, newPod(t, namespace, "trusted-beside", a, false), a, state{imageA, "100m", imageA})
	})
	t.Run("a resize by Insitu", func(t *testing.T) {
		mustBeMade(t, insitu, newPod(t, namespace, "resized", a, false), a, state{imageA, "200m", imageB})
	})
	t.Run("an ephemeral container", func(t *testing.T) {
		g := NewWithT(t)
		g.Expect(debug(t, admin, pod, imageX)).To(MatchError(ContainSubstring(refusal)))
		g.Expect(debug(t, admin, pod, imageB)).To(Succeed())
	})
	t.Run("an image that is no longer trusted", func(t *testing.T) {
		g := NewWithT(t)
		running, repaired := newPod(t, namespace, "revoked", a, true), newPod(t, namespace, "repaired", a, false)
		trust(t, imageB)
		await(t, func() error { return creation(t, admin, namespace, imageA) }, refusal)
		mustBeDenied(t, insitu, running, a, state{imageA, "200m", imageB}, refusal)
		// What starts nothing is let through, or no client could clean up.
		labeled := running.DeepCopy()
		labeled.Labels["looked"] = "at"
		g.Expect(admin.Patch(t.Context(), labeled, client.MergeFrom(running))).To(Succeed())
		mustBeMade(t, insitu, repaired, a, b)
		g.Expect(admin.Delete(t.Context(), running, client.GracePeriodSeconds(0))).To(Succeed())
	})
	t.Run("elsewhere", func(t *testing.T) {
		newPod(t, "default", namespace, x, false)
	})
}

func TestVerifiedImages(t *testing.T) {
	install(t, "verified-images.yaml", "verified-by-policy", nil)
	signed(t, "verified-by-policy", "no verified signature for", trust)
}

// Without the list nothing is verified.
func TestVerifiedImagesNeedTheList(t *testing.T) {
	install(t, "verified-images.yaml", "verified-by-none", func(obj *unstructured.Unstructured) {
		if obj.GetKind() == "ValidatingAdmissionPolicyBinding" {
			_ = unstructured.SetNestedField(obj.Object, "missing", "spec", "paramRef", "name")
		}
	})
	admin := clientOf(t, "")
	await(t, func() error { return creation(t, admin, "verified-by-none", imageA) }, "no params found")
}

// creation tries to create a pod with an image.
func creation(t *testing.T, c client.Client, namespace, image string, with ...func(*corev1.PodSpec)) error {
	t.Helper()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = namespace, "tried"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: image}}
	for _, change := range with {
		change(&pod.Spec)
	}

	return c.Create(t.Context(), pod, client.DryRunAll)
}

// servesVolumesFromImages reports whether the API server keeps what a pod says of them: the
// oldest releases that are supported leave it out.
func servesVolumesFromImages(t *testing.T, c client.Client) bool {
	t.Helper()
	pod := &corev1.Pod{}
	pod.Namespace, pod.Name = "default", "tried"
	pod.Spec.Containers = []corev1.Container{{Name: "main", Image: imageB}}
	volume(imageB)(&pod.Spec)
	NewWithT(t).Expect(c.Create(t.Context(), pod, client.DryRunAll)).To(Succeed())

	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Image != nil })
}

func initContainer(image string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		spec.InitContainers = []corev1.Container{{Name: "once", Image: image}}
	}
}

// volume has the files of an image in a pod: they may be programs, too.
func volume(image string) func(*corev1.PodSpec) {
	return func(spec *corev1.PodSpec) {
		source := corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent}}
		spec.Volumes = []corev1.Volume{{Name: "files", VolumeSource: source}}
	}
}
