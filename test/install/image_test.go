// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// The way of docs/try.md to a cluster of one's own: the lab takes the archive as kind, minikube,
// docker and podman do.
var _ = Describe("The image that make image makes", func() {
	It("runs from its archive, with the chart and the tag", func(ctx context.Context) {
		run(ctx, "make", "--no-print-directory", "image", "IMAGE=insitu-dev/insitu:own")
		run(ctx, "hack/lab", "load", "insitu-dev/insitu:own", "--archive", ".out/image.tar", "--dir", os.Getenv("INSITU_LAB"))

		install(ctx, presentChart, "--set=image.tag=own")

		Expect(replicas(ctx)).To(HaveEach(HaveField("Spec.Containers", ConsistOf(HaveField("Image", "insitu-dev/insitu:own")))))
		Expect(replicas(ctx)).To(ContainElement(WithTransform(logOf(ctx), ContainSubstring(`-dev","commit"`))), "its version says that it is no release")
		DeferCleanup(deleteCheck, releaseNamespace)
		Expect(helm(ctx, "test", release, "--logs", "--timeout", patience.String())).To(ContainSubstring("renews Lease insitu-system/insitu-manager"))
	}, SpecTimeout(20*time.Minute))
})

// run runs a command at the root of the repository.
func run(ctx context.Context, name string, args ...string) {
	GinkgoHelper()
	root, err := filepath.Abs(filepath.Join("..", ".."))
	Expect(err).NotTo(HaveOccurred())
	command := exec.CommandContext(ctx, name, args...)
	command.Dir = root
	output, err := command.CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s %v: %s", name, args, output)
}

// logOf returns what the log of a pod says.
func logOf(ctx context.Context) func(corev1.Pod) string {
	return func(pod corev1.Pod) string { return kubectl(ctx, "logs", "-n", pod.Namespace, pod.Name) }
}
