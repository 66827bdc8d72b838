// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

var _ = Describe("A restart of a DaemonSet's containers", func() {
	It("goes in place, within the budget", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.expectSettled(3)
		uids := w.uids()

		w.change(func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Annotations = map[string]string{appsv1beta1.RestartAnnotationPrefix + "main": "2026-01-02T12:00:00Z"}
		})
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2), "maxUnavailable is 1") })

		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
		for name, pod := range w.pods() {
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1), name)
		}
	})
})
