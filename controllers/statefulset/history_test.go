// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("The history", func() {
	// A write of the status brings no set back into the queue: what is still to
	// be deleted then would be deleted by the next manager, from a settled set.
	It("is as short as it shall be when the set reports to be done", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.StatefulSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](1) }))
		for _, image := range []string{"nginx:latest", "nginx:third", "nginx:fourth", "nginx:latest"} {
			w.setImage(image)
			w.settleWith(func() {
				if status := w.status(); status.CurrentRevision == status.UpdateRevision {
					Expect(len(w.revisions())).To(BeNumerically("<=", 2))
				}
			})
			w.expectSettled(3)
		}
		Expect(w.revisions()).To(HaveLen(2))
	})
})
