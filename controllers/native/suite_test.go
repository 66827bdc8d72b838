// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/insitu-dev/insitu/test/apiserver"
	"github.com/insitu-dev/insitu/test/policies"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

var (
	server *apiserver.Server
	// shared is the view of the cluster of specs that call Reconcile themselves.
	shared cluster.Cluster
)

func TestNativeControllers(t *testing.T) {
	RegisterFailHandler(Fail)
	short.RunSpecs(t, "native controllers")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	var err error
	server, err = apiserver.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
	shared = stage.NewView(server.Config())
	Expect(policies.InstallDrain(context.Background(), shared.GetClient())).To(Succeed())
})
