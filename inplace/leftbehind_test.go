// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/resize"
	"github.com/insitu-dev/insitu/test/builders"
)

func TestLeftBehind(t *testing.T) {
	template := func(change func(*corev1.PodTemplateSpec)) *Template {
		spec := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "app:a"}}}}
		if change != nil {
			change(&spec)
		}
		parsed, err := NewTemplate(spec)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		return parsed.Native()
	}
	image := func(image string) *Template {
		return template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Image = image })
	}
	labeled := func(value string) *Template {
		return template(func(t *corev1.PodTemplateSpec) { t.Labels = map[string]string{"tier": value} })
	}
	sized := func(cpu string) *Template {
		return template(func(t *corev1.PodTemplateSpec) { t.Spec.Containers[0].Resources = builders.Resources(cpu, "64Mi") })
	}
	pod := func(image string) *builders.PodBuilder { return builders.Pod("web-0", "b", image) }
	for name, tc := range map[string]struct {
		pod        *builders.PodBuilder
		at, wanted *Template
		lacks      string
	}{
		"it went ahead":                         {pod("app:b"), image("app:b"), image("app:a"), "image of main: app:b to app:a"},
		"it went ahead, rewritten by admission": {pod("cache/app:b"), image("app:b"), image("app:a"), "image of main: cache/app:b to app:a"},
		"it is where it is to be":               {pod("app:b"), image("app:b"), image("app:b"), ""},
		"admission rewrote it":                  {pod("cache/app:b@sha256:1"), image("app:b"), image("app:b"), ""},
		"a user changed it by hand":             {pod("app:c"), image("app:b"), image("app:b"), ""},
		"a user put it right by hand":           {pod("app:a"), image("app:b"), image("app:a"), ""},
		"its revision is not known":             {pod("app:b"), nil, image("app:a"), ""},
		"a label":                               {pod("app:a").Label("tier", "new"), labeled("new"), labeled("old"), "labels or annotations"},
		"a label of another client":             {pod("app:a").Label("team", "x"), labeled("new"), labeled("new"), ""},
		"a default of a newer Kubernetes": {pod("app:b"), image("app:b"), template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].Image, t.Spec.Overhead = "app:b", corev1.ResourceList{}
			t.Spec.SchedulerName, t.Spec.PreemptionPolicy = "another", new(corev1.PreemptLowerPriority)
		}), ""},
		"another container came": {pod("app:b"), image("app:b"), template(func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers = append(t.Spec.Containers, corev1.Container{Name: "new", Image: "new:a"})
			t.Spec.Containers[0].Image = "app:b"
		}), ""},
		"a batch is missing": {pod("app:a").Record(appsv1beta1.InPlaceUpdateState{
			Revision: "b", NextContainerImages: map[string]string{"main": "app:b"},
		}), image("app:b"), image("app:b"), "image of main: app:a to app:b"},
		"a batch of a revision before": {pod("app:b").Record(appsv1beta1.InPlaceUpdateState{
			Revision: "a", NextContainerImages: map[string]string{"main": "app:c"},
		}), image("app:b"), image("app:b"), ""},
		"we resized it, and its label did not follow": {
			builders.Pod("web-0", "", "app:a").Sized("200m", "64Mi").ResizedBy(resize.FieldManager, after(0), "requests.cpu"),
			nil, sized("100m"), "cpu request of main: 200m to 100m",
		},
		"we resized it to what it is to have": {
			pod("app:a").Sized("200m", "64Mi").ResizedBy(resize.FieldManager, after(0), "requests.cpu"), sized("200m"), sized("200m"), "",
		},
		"an autoscaler resized it": {
			pod("app:a").Sized("300m", "64Mi").ResizedBy("vpa-updater", after(0), "requests.cpu"), sized("200m"), sized("200m"), "",
		},
		"an autoscaler resized what went ahead": {
			pod("app:a").Sized("300m", "64Mi").ResizedBy("vpa-updater", after(0), "requests.cpu"), sized("200m"), sized("100m"), "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(LeftBehind(tc.pod.Build(), tc.at, tc.wanted, after(0))).To(Equal(tc.lacks))
		})
	}
}
