// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package inplace

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

func TestRestartCounts(t *testing.T) {
	image := Change{Images: imageTo(alpineImage, latestImage)}
	for name, tc := range map[string]struct {
		change        Change
		known         string
		label         string
		wantContainer string
		wantPod       string
	}{
		"the first update":          {image, "", "", `{"main":{"revision":"b","restartCount":3}}`, "5"},
		"another container's stays": {image, `{"side":{"revision":"x","restartCount":1}}`, "", `{"main":{"revision":"b","restartCount":3},"side":{"revision":"x","restartCount":1}}`, "5"},
		"its own is replaced":       {image, `{"main":{"revision":"x","restartCount":1}}`, "", `{"main":{"revision":"b","restartCount":3}}`, "5"},
		"one that is gone goes":     {image, `{"gone":{"revision":"x","restartCount":1}}`, "", `{"main":{"revision":"b","restartCount":3}}`, "5"},
		"what cannot be read goes":  {image, `3 times`, "", `{"main":{"revision":"b","restartCount":3}}`, "5"},
		"labels restart nothing":    {Change{}, `{"main":{"revision":"x","restartCount":1}}`, "", "", ""},
		"the second batch of a pod": {image, "", "b", `{"main":{"revision":"b","restartCount":3}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			pod := readingPod().With(func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[1].RestartCount = 3, 2
				if tc.label != "" {
					p.Labels[appsv1beta1.ControllerRevisionHashLabel] = tc.label
				}
				if tc.known != "" {
					p.Annotations[appsv1beta1.RestartCountKey] = tc.known
				}
			}).Build()
			counts := restartCounts(pod, tc.change, "b")
			if tc.wantContainer == "" {
				g.Expect(counts).To(BeEmpty())
				return
			}
			g.Expect(counts[appsv1beta1.RestartCountKey]).To(MatchJSON(tc.wantContainer))
			g.Expect(counts[appsv1beta1.PodRestartCountKey]).To(Equal(tc.wantPod))
		})
	}
}
