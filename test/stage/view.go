// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package stage is what the suites of controllers play on: a real API server seen
// through a cache as the manager has it, a manager that can die after any write,
// and a kubelet. Its helpers fail the ginkgo spec that calls them.
package stage

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/podcache"
)

// NewView starts a cache with the options of the manager, and a client that reads
// from it and waits for its own writes. It ends with the spec or the suite.
func NewView(connection *rest.Config) cluster.Cluster {
	GinkgoHelper()
	scheme := runtime.NewScheme()
	Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	Expect(appsv1beta1.AddToScheme(scheme)).To(Succeed())
	Expect(snapshotv1.AddToScheme(scheme)).To(Succeed())
	config := rest.CopyConfig(connection)
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
