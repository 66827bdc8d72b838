// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"context"
	"os"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestRun needs a real API server: the programs etcd and kube-apiserver in the
// folder that KUBEBUILDER_ASSETS names. Links of these names to the lab's
// binary will do.
func TestRun(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver; run the lab's tests with: make test-lab")
	}
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(2 * time.Minute)
	SetDefaultEventuallyPollingInterval(20 * time.Millisecond)
	RunSpecs(t, "Run")
}

var (
	server *envtest.Environment
	config *rest.Config
	client kubernetes.Interface
)

var _ = BeforeSuite(func() {
	server = &envtest.Environment{ControlPlaneStartTimeout: 2 * time.Minute, ControlPlaneStopTimeout: 2 * time.Minute}
	var err error
	config, err = server.Start()
	Expect(err).NotTo(HaveOccurred())
	config.QPS = -1
	client, err = kubernetes.NewForConfig(config)
	Expect(err).NotTo(HaveOccurred())
})

var _ = AfterSuite(func() {
	if server != nil {
		Expect(server.Stop()).To(Succeed())
	}
})

// start runs simulated nodes until the returned function or the spec ends.
func start(opts Options) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, config, opts) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		Expect(<-ended).To(Succeed())
	}
	DeferCleanup(stop)
	return stop
}

// newNamespace returns the name of a namespace of the spec's own.
func newNamespace(ctx context.Context) string {
	namespace, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "sim-"},
	}, metav1.CreateOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx context.Context) {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64)}
		Expect(client.CoreV1().Pods(namespace.Name).DeleteCollection(ctx, now, metav1.ListOptions{})).To(Succeed())
	})
	return namespace.Name
}
