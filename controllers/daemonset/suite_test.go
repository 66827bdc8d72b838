// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/insitu-dev/insitu/test/apiserver"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

// The specs call Reconcile themselves. What they read and write goes through one
// client that waits for its own writes, as the manager's does: so nothing has to
// be waited for, and nothing is ever read too early.
var (
	server *apiserver.Server
	// shared is the view of the cluster that most specs use.
	shared cluster.Cluster
)

func TestDaemonSetController(t *testing.T) {
	RegisterFailHandler(Fail)
	short.RunSpecs(t, "DaemonSet controller")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	var err error
	server, err = apiserver.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
	shared = newView()
})

// newView starts a cache as the manager has it, and a client that reads from it.
func newView() cluster.Cluster {
	GinkgoHelper()
	return stage.NewView(server.Config())
}
