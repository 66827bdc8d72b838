// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("The default installation", Ordered, func() {
	BeforeAll(func(ctx context.Context) { install(ctx, presentChart) })

	It("has its replicas on different nodes, and gives up one of them at a time", short.Spec, func(ctx context.Context) {
		pods := replicas(ctx)
		Expect(pods).To(HaveLen(2))
		Expect(pods[0].Spec.NodeName).NotTo(Equal(pods[1].Spec.NodeName))

		refused := evict(ctx, pods)

		Expect(refused).To(HaveLen(1), "the other one was evicted")
		Expect(apierrors.IsTooManyRequests(refused[0])).To(BeTrue(), "%v", refused[0])
		kubectl(ctx, "rollout", "status", "-n", releaseNamespace, "deployment/insitu-manager", "--timeout", patience.String())
	})

	It("passes helm test", short.Spec, func(ctx context.Context) {
		DeferCleanup(deleteCheck, releaseNamespace)
		output := helm(ctx, "test", release, "--logs", "--timeout", patience.String())
		Expect(output).To(And(
			ContainSubstring("ok    statefulsets.apps.kruise.io: served"),
			ContainSubstring("ok    rights in all namespaces: all "),
			ContainSubstring("renews Lease insitu-system/insitu-manager"),
			Not(ContainSubstring("FAIL")),
		))
	})

	It("fails helm test, which says what to do, where no replica leads", func(ctx context.Context) {
		// The check waits for twice the time in which another replica takes over.
		upgrade(ctx, presentChart, "--set=replicas=0", "--set=config.leaderElection.leaseDuration=4s",
			"--set=config.leaderElection.renewDeadline=3s", "--set=config.leaderElection.retryPeriod=1s")
		Eventually(ctx, replicas).Should(BeEmpty())

		DeferCleanup(deleteCheck, releaseNamespace)
		output := helmFails(ctx, "test", release, "--timeout", patience.String())
		Expect(output).To(ContainSubstring("FAIL  leader: no manager holds Lease insitu-system/insitu-manager: see what its pods do, kubectl -n insitu-system get pods"))
	})
})

// replicas returns the pods of the manager.
func replicas(ctx context.Context) []corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(releaseNamespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"})).To(Succeed())
	return list.Items
}

// deleteCheck deletes the pod of helm test, which an uninstall leaves where it is.
func deleteCheck(ctx context.Context, namespace string) {
	GinkgoHelper()
	kubectl(ctx, "delete", "pod", "-n", namespace, "insitu-check", "--ignore-not-found")
}

// evict asks for the eviction of all pods at the same time, and returns what is refused.
func evict(ctx context.Context, pods []corev1.Pod) []error {
	var mutex sync.Mutex
	var refused []error
	var group sync.WaitGroup
	for i := range pods {
		group.Go(func() {
			eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pods[i].Namespace, Name: pods[i].Name}}
			if err := kube.PolicyV1().Evictions(pods[i].Namespace).Evict(ctx, eviction); err != nil {
				mutex.Lock()
				defer mutex.Unlock()
				refused = append(refused, err)
			}
		})
	}
	group.Wait()
	return refused
}
