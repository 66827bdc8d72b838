// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/test/labtools"
	"github.com/insitu-dev/insitu/test/observe"
)

// kubectl runs it, and returns what it printed.
func kubectl(ctx context.Context, args ...string) (string, error) {
	return labtools.Kubectl(ctx, args...)
}

// A manifest with ten kinds of mistakes, applied as a user would: kubectl prints
// one message for each.
var _ = Describe("kubectl apply", func() {
	It("takes the sample as it is", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("..", "..", "config", "samples", "statefulset.yaml"))
		Expect(err).NotTo(HaveOccurred(), output)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			found, err := observe.Pods(ctx, kube, namespace, "app=sample")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(And(HaveLen(3), HaveEach(HaveField("Ready", true))))
		}).Should(Succeed())
	})

	It("refuses ten kinds of mistakes, each with a clear message", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("testdata", "mistakes.yaml"))
		Expect(err).To(HaveOccurred(), output)
		for _, message := range []string{
			`spec.replicas in body should be greater than or equal to 0`,
			`Unsupported value: "InPlaceAlways": supported values: "ReCreate", "InPlaceIfPossible", "InPlaceOnly"`,
			`maxUnavailable must be`,
			`maxUnavailable must be 1 with podManagementPolicy OrderedReady; found 2`,
			`spec.updateStrategy.rollingUpdate.partition in body must be of type integer`,
			`template.metadata.labels must hold every label of selector.matchLabels`,
			`template.spec.restartPolicy must be Always or absent; found Never`,
			`reserveOrdinals must hold ordinals from 0 (3) or ranges from the lower to the higher ("3-5"); found "5-3"`,
			`updateStrategy.rollingUpdate is only accepted with type RollingUpdate; found type OnDelete`,
			`unknown field "spec.updateStrategy.rollingUpdate.podUpdatePolicie"`,
		} {
			Expect(output).To(ContainSubstring(message))
		}
		Expect(output).NotTo(ContainSubstring("created"))
		GinkgoWriter.Println(output)
	})
})
