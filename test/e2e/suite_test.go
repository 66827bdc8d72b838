// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

// Package e2e runs the operator on a real cluster and looks at it as a user
// would. It needs KUBECONFIG, and INSITU_LAB for the folder of the lab; run it
// with: make test-e2e
package e2e

import (
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/insitu-dev/insitu/test/labtools"
)

// The images that the lab serves. The sleeper is a test program that does what
// its flags say; "crash" ends with an error after a second.
const (
	nginxAlpine = "nginx:alpine"
	nginxLatest = "nginx:latest"
	// nginxStable has the digest of nginxLatest.
	nginxStable  = "nginx:stable"
	nginxMissing = "nginx:no-such-tag"
	sleeperV1    = "insitu-dev/sleeper:v1"
	sleeperV2    = "insitu-dev/sleeper:v2"
	sleeperCrash = "insitu-dev/sleeper:crash"
)

// patience is how long a rollout may take on a slow machine.
const patience = 3 * time.Minute

var (
	api     client.WithWatch
	kube    kubernetes.Interface
	labPath string
)

func TestEndToEnd(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "End to end")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	labPath = os.Getenv("INSITU_LAB")
	Expect(labPath).NotTo(BeEmpty(), "INSITU_LAB names the folder of the lab; run the suite with: make test-e2e")
	var err error
	api, kube, err = labtools.Connect()
	Expect(err).NotTo(HaveOccurred())

	SetDefaultEventuallyTimeout(patience)
	SetDefaultEventuallyPollingInterval(250 * time.Millisecond)
	EnforceDefaultTimeoutsWhenUsingContexts()
})
