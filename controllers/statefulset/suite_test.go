// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/log"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
	"github.com/insitu-dev/insitu/test/apiserver"
)

// The specs call Reconcile themselves. What they read and write goes through one
// client that waits for its own writes, as the manager's does: so nothing has to
// be waited for, and nothing is ever read too early.
var (
	server *apiserver.Server
	// shared is the view of the cluster that most specs use.
	shared cluster.Cluster
)

func TestStatefulSetController(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "StatefulSet controller")
}

var _ = BeforeSuite(func() {
	log.SetLogger(GinkgoLogr)
	var err error
	server, err = apiserver.Start()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(server.Stop()).To(Succeed()) })
	shared = newView()
})

// newView starts a cache with the options of the manager, and a client that
// reads from it.
func newView() cluster.Cluster {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	config := server.Config()
	config.QPS, config.Burst = -1, -1
	view, err := cluster.New(config, func(o *cluster.Options) {
		o.Scheme = scheme
		o.Cache = podcache.Options(nil)
		o.Client = client.Options{Cache: &client.CacheOptions{EnableReadYourWritesConsistency: ptr.To(true)}}
	})
	Expect(err).NotTo(HaveOccurred())

	ctx, stop := context.WithCancel(context.Background())
	Expect(podcache.AddIndexes(ctx, view.GetFieldIndexer())).To(Succeed())
	stopped := make(chan error)
	go func() { stopped <- view.Start(ctx) }()
	DeferCleanup(func() {
		stop()
		Expect(<-stopped).To(Succeed())
	})
	Expect(view.GetCache().WaitForCacheSync(ctx)).To(BeTrue())
	return view
}
