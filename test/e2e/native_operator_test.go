// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/apis/native"
)

var _ = Describe("Without the operator", Serial, func() {
	forEachKind("a rollout", func(kind string) {
		var web builtin
		BeforeEach(func(ctx context.Context) { web = builtin{kind: kind, namespace: newNamespace(ctx)} })

		It("waits for it, and goes in place then", func(ctx context.Context) {
			before := web.start(ctx, web.manifest(nginxAlpine))
			start := stopOperator(ctx)
			web.setImage(ctx, nginxLatest)
			web.apply(ctx, web.manifest(nginxLatest))
			Consistently(ctx, func(g Gomega, ctx context.Context) {
				g.Expect(web.isHeld(ctx)).To(BeTrue())
				found := web.pods(ctx)
				g.Expect(uids(found)).To(Equal(uids(before)))
				g.Expect(images(found)).To(HaveEach(nginxAlpine))
			}).WithTimeout(5 * time.Second).Should(Succeed())
			start(ctx)
			expectInPlace(before, web.updated(ctx), 1)
		})

		It("is left to Kubernetes when the label is removed in the middle", func(ctx context.Context) {
			web.start(ctx, web.gated(nginxAlpine))
			wish := web.wish(ctx)
			web.half(ctx, nginxLatest)
			start := stopOperator(ctx)
			web.kubectl(ctx, "label", web.resource(), native.UpdatePolicyLabel+"-")
			web.expectNoTraces(ctx)
			Expect(web.wish(ctx)).To(Equal(wish))
			start(ctx) // it opens the gates of new pods
			web.rolledOut(ctx)
			Expect(images(web.pods(ctx))).To(HaveEach(nginxLatest))
		})
	})
})

var _ = Describe("The operator, killed with SIGKILL", Serial, func() {
	forEachKind("in the middle of a rollout in place", func(kind string) {
		It("goes on where it was", func(ctx context.Context) {
			web := builtin{kind: kind, namespace: newNamespace(ctx)}
			before := web.start(ctx, web.gated(nginxAlpine))
			web.setImage(ctx, nginxLatest)
			web.reached(ctx, nginxLatest, 1)
			killOperator(ctx)
			expectInPlace(before, web.updated(ctx), 1)
		})
	})
})

var _ = Describe("The operator's writes", Serial, func() {
	forEachKind("to the pods", func(kind string) {
		It("are none when the rollout has ended, also after a restart of the operator", func(ctx context.Context) {
			web := builtin{kind: kind, namespace: newNamespace(ctx)}
			web.start(ctx, web.gated(nginxAlpine))
			web.setImage(ctx, nginxLatest)
			web.updated(ctx)
			written := writesAtRest(ctx, web.namespace)
			nudge := func(value string) {
				web.kubectl(ctx, "label", "--overwrite", "pods", "--all", "nudge="+value)
				web.kubectl(ctx, "annotate", "--overwrite", web.resource(), "nudge="+value)
			}
			nudge("first")
			killOperator(ctx)
			nudge("second")
			Consistently(ctx, func() []string { return operatorWrites(web.namespace)[written:] }).WithTimeout(5 * time.Second).Should(BeEmpty())
		})
	})
})
