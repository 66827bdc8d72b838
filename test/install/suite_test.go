// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

// Package install installs the chart on a real cluster, upgrades it from the previous
// release and uninstalls it, as its user does, and looks at what becomes of the
// workloads. Each group of specs brings the cluster to where it begins. It needs
// KUBECONFIG, INSITU_LAB for the folder of the lab, PREVIOUS_RELEASE for the sources of
// that release, and both images in the lab; run it with: make test-install
package install

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/insitu-dev/insitu/test/labtools"
)

// The images that the lab serves and the workloads run.
const (
	nginxAlpine = "nginx:alpine"
	nginxLatest = "nginx:latest"
	sleeperV1   = "insitu-dev/sleeper:v1"
	sleeperV2   = "insitu-dev/sleeper:v2"
)

// How the chart is installed.
const (
	release          = "insitu"
	releaseNamespace = "insitu-system"
	operatorUser     = "system:serviceaccount:" + releaseNamespace + ":insitu-manager"
	presentSources   = "../.."
	presentChart     = presentSources + "/charts/insitu"
)

// patience is how long a step may take on a slow machine.
const patience = 3 * time.Minute

var (
	api                                   client.Client
	kube                                  kubernetes.Interface
	auditPath, formerSources, formerChart string
)

func TestInstall(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Installation")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	lab, former := os.Getenv("INSITU_LAB"), os.Getenv("PREVIOUS_RELEASE")
	Expect([]string{lab, former}).NotTo(ContainElement(BeEmpty()), "INSITU_LAB and PREVIOUS_RELEASE name folders; run the suite with: make test-install")
	auditPath, formerSources = filepath.Join(lab, "logs", "audit.log"), former
	formerChart = filepath.Join(former, "charts", "insitu")
	var err error
	api, kube, err = labtools.Connect()
	Expect(err).NotTo(HaveOccurred())

	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
})

// helm runs Helm on the release's namespace, and returns what it printed.
func helm(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := labtools.Helm(ctx, append([]string{"--namespace", releaseNamespace}, args...)...)
	Expect(err).NotTo(HaveOccurred(), "helm %s: %s", strings.Join(args, " "), output)
	return output
}

// helmFails runs Helm, which has to fail, and returns what it printed.
func helmFails(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := labtools.Helm(ctx, append([]string{"--namespace", releaseNamespace}, args...)...)
	Expect(err).To(HaveOccurred(), "helm %s: %s", strings.Join(args, " "), output)
	return output
}

// kubectl runs kubectl, and returns what it printed.
func kubectl(ctx context.Context, args ...string) string {
	GinkgoHelper()
	output, err := labtools.Kubectl(ctx, args...)
	Expect(err).NotTo(HaveOccurred(), "kubectl %s: %s", strings.Join(args, " "), output)
	return output
}

// install installs a chart where no release is, and waits until it is ready.
func install(ctx context.Context, chart string, flags ...string) {
	GinkgoHelper()
	uninstall(ctx)
	helm(ctx, append([]string{"install", release, chart, "--create-namespace", "--wait", "--timeout", patience.String()}, flags...)...)
}

// upgrade upgrades the release to a chart, and waits until it is ready.
func upgrade(ctx context.Context, chart string, flags ...string) {
	GinkgoHelper()
	helm(ctx, append([]string{"upgrade", release, chart, "--wait", "--timeout", patience.String()}, flags...)...)
}

// uninstall uninstalls the release, if there is one.
func uninstall(ctx context.Context) {
	GinkgoHelper()
	helm(ctx, "uninstall", release, "--ignore-not-found", "--wait", "--timeout", patience.String())
}
