// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("A restart of one container of a Deployment", func() {
	It("goes in place, and is in the history", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		d := w.deployment(func(d *appsv1.Deployment) {
			d.Spec.Template = template(oldImage)
			d.Spec.Template.Annotations = map[string]string{appsv1beta1.RestartAnnotationPrefix + "main": "2026-01-02T12:00:00Z"}
		})
		rs := w.replicaSet(d, "old", oldImage, 2)
		w.pods(rs)

		w.settle()

		for _, named := range []string{rs.Name + "-0", rs.Name + "-1"} {
			pod := get(w, &corev1.Pod{}, named)
			Expect(pod.Status.ContainerStatuses[0].ContainerID).NotTo(HaveSuffix("-1"), "it was started again")
			Expect(pod.Annotations).To(HaveKeyWithValue(appsv1beta1.RestartAnnotationPrefix+"main", "2026-01-02T12:00:00Z"))
		}
		Expect(get(w, &appsv1.ReplicaSet{}, rs.Name).Spec.Template.Annotations).To(HaveKey(appsv1beta1.RestartAnnotationPrefix + "main"))
	})
})
