// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/test/labtools"
)

// chart returns the folder of a chart with nothing but the workload, whose image is a value.
func (b builtin) chart() string {
	GinkgoHelper()
	folder := GinkgoT().TempDir()
	Expect(os.Mkdir(filepath.Join(folder, "templates"), 0o700)).To(Succeed())
	for name, content := range map[string]string{
		"Chart.yaml":         "{apiVersion: v2, name: web, version: 1.0.0}\n",
		"templates/web.yaml": b.manifest("{{ .Values.image }}"),
	} {
		Expect(os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600)).To(Succeed())
	}
	return folder
}

// helm runs a command of Helm on the namespace of the workload, and returns what it printed.
func (b builtin) helm(ctx context.Context, args ...string) (string, error) {
	return labtools.Helm(ctx, append([]string{"--namespace", b.namespace}, args...)...)
}

// upgrade installs or upgrades a chart of the workload, and returns what Helm printed.
func (b builtin) upgrade(ctx context.Context, chart, image string, flags ...string) (string, error) {
	return b.helm(ctx, append([]string{"upgrade", "--install", "web", chart, "--set", "image=" + image}, flags...)...)
}

// The waiters of Helm 4 and of Helm 3.
var waiters = []string{"--wait", "--wait=legacy"}

var _ = DescribeTable("helm upgrade --wait", func(ctx context.Context, kind string) {
	web := builtin{kind: kind, namespace: newNamespace(ctx)}
	chart := web.chart()
	output, err := web.upgrade(ctx, chart, nginxAlpine, "--wait", "--timeout="+patience.String())
	Expect(err).NotTo(HaveOccurred(), output)
	before := web.pods(ctx)

	for n, waiter := range waiters {
		image := []string{nginxLatest, nginxAlpine}[n]
		output, err := web.upgrade(ctx, chart, image, waiter, "--timeout="+patience.String())
		Expect(err).NotTo(HaveOccurred(), output)
		Expect(countImage(web.pods(ctx), image)).To(Equal(len(before)), "%s returns when all pods are updated", waiter)
		expectInPlace(before, web.updated(ctx), int32(n)+1)
	}
},
	Entry("waits for a Deployment", deployment),
	Entry("waits for a StatefulSet", statefulSet),
	Entry("waits for a DaemonSet", daemonSet))

var _ = DescribeTable("helm upgrade --wait with an image that does not start", func(ctx context.Context, kind string) {
	web := builtin{kind: kind, namespace: newNamespace(ctx)}
	chart := web.chart()
	output, err := web.upgrade(ctx, chart, nginxAlpine, "--wait", "--timeout="+patience.String())
	Expect(err).NotTo(HaveOccurred(), output)
	before := web.pods(ctx)

	// The rollback waits, too, and no longer than the upgrade.
	output, err = web.upgrade(ctx, chart, nginxMissing, "--wait", "--rollback-on-failure", "--timeout=20s")
	Expect(err).To(HaveOccurred(), output)
	Expect(output).To(ContainSubstring("has been rolled back"))
	Expect(web.updated(ctx)).To(Equal(before), "no pod was touched")

	output, err = web.upgrade(ctx, chart, nginxMissing, "--wait=legacy", "--timeout=20s")
	Expect(err).To(HaveOccurred(), output)
	Expect(strings.ToLower(output)).To(ContainSubstring("deadline exceeded"))
	Expect(uids(web.pods(ctx))).To(Equal(uids(before)))
},
	Entry("goes back from a Deployment, or fails", deployment),
	Entry("goes back from a StatefulSet, or fails", statefulSet),
	Entry("goes back from a DaemonSet, or fails", daemonSet))
