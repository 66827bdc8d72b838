// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("A restart that the template asks for", func() {
	It("is of all containers, or of one, in place, and is undone without another", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		set := reference().Build()
		set.Spec.Template.Spec.Containers = append(set.Spec.Template.Spec.Containers, corev1.Container{Name: "log", Image: "busybox:1"})
		w.apply(set)
		w.settle()
		uids := w.uids()
		ask := func(annotations map[string]string) {
			w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Annotations = annotations })
			w.settle()
			w.expectSettled(3)
			Expect(w.uids()).To(Equal(uids))
		}

		ask(map[string]string{inplace.RestartedAtAnnotation: "2026-01-02T12:00:00Z"})
		Expect(w.restarts()).To(Equal(same[int32](2)), "both")

		ask(map[string]string{inplace.RestartedAtAnnotation: "2026-01-02T12:00:00Z", appsv1beta1.RestartAnnotationPrefix + "log": "2026-01-02T13:00:00Z"})
		Expect(w.restarts()).To(Equal(same[int32](3)), "one more")
		for name, pod := range w.pods() {
			Expect(pod.Status.ContainerStatuses).To(ContainElement(And(HaveField("Name", "log"), HaveField("RestartCount", int32(2)))), name)
		}

		ask(nil)
		Expect(w.restarts()).To(Equal(same[int32](3)))
	})
})
