// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/insitu-dev/insitu/test/builders"
)

// Between a change and its restart, the status shows the digest of what ran
// before. A restart that overtakes the change must not add that to the new image:
// it would bring back the old one.
func TestARestartNeverNamesWhatRanBefore(t *testing.T) {
	reading := func(image, level string) *Template {
		return parse(t, strings.ReplaceAll(strings.Replace(readingMain, "%", level, 1), alpineImage, image))
	}
	for name, tc := range map[string]struct {
		image string
		pod   *builders.PodBuilder
		to    string
	}{
		"the kubelet has not acted yet": {
			latestImage, builders.Pod("sample-0", "b", alpineImage).Record(record(entry(alpineImage))).Generation(2, 1), "nginx",
		},
		"it cannot pull the image": {
			latestImage, builders.Pod("sample-0", "b", alpineImage).Record(record(entry(alpineImage))).Generation(2, 2).
				Status(waitingContainer("containerd://main-1", "ImagePullBackOff")), "nginx",
		},
		"it went back before it was acted on": {
			alpineImage, builders.Pod("sample-0", "b", alpineImage).Record(record(entry(alpineImage))).Generation(3, 1),
			alpineImage + strings.TrimPrefix(builders.ImageID(alpineImage), "docker.io/library/nginx"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := tc.pod.Annotation("level", "1").With(func(p *corev1.Pod) { p.Spec.Containers[0].Image = tc.image }).Build()
			change, refused := Compare(pod, reading(tc.image, "1"), reading(tc.image, "2"), patched.Add(1))
			g.Expect(refused).To(BeNil())
			g.Expect(change.Images).To(HaveLen(1))
			g.Expect(change.Images[0].To).To(Equal(tc.to))
		})
	}
}

// A change that is taken back before the kubelet has acted may be acted on all the
// same. If the same image is wanted again, for another environment, it has to be
// spelled otherwise.
func TestWhatWasTakenBackIsNotForgotten(t *testing.T) {
	g := NewWithT(t)
	reading := func(image, level string) *Template {
		return parse(t, strings.ReplaceAll(strings.Replace(readingMain, "%", level, 1), alpineImage, image))
	}
	pod := builders.Pod("sample-0", "a", alpineImage).Annotation("level", "1").With(func(p *corev1.Pod) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}}}
	}).Build()
	var step Step
	for i, next := range []struct{ image, level string }{{latestImage, "1"}, {alpineImage, "1"}, {latestImage, "2"}} {
		from := Revision{Name: RevisionOf(pod), Template: reading(pod.Spec.Containers[0].Image, pod.Annotations["level"])}
		target := Target{Revision: Revision{Name: string(rune('b' + i)), Template: reading(next.image, next.level)}, Policy: "InPlaceOnly", CannotDrain: unheeded}
		step = Next(PodFacts{Pod: pod, From: &from}, target, patched)
		body, err := RevisionPatch(pod, step)
		g.Expect(err).NotTo(HaveOccurred())
		pod = mergePod(t, pod, body)
		pod.Generation++
		pod.Status.ObservedGeneration = 1
	}
	g.Expect(step.Change.Images).To(HaveLen(1))
	g.Expect(step.Change.Images[0]).To(And(HaveField("To", "nginx"), HaveField("StandsFor", latestImage)))
}
