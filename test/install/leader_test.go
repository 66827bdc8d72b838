// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build install

package install

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/test/labtools"
	"github.com/insitu-dev/insitu/test/observe"
)

// The suite in test/e2e kills the leader at other moments, and whichever replica leads
// then may go on. Here the one that was killed stays dead.
var _ = Describe("A leader that is killed in the middle of a rollout", func() {
	It("leaves the rollout to the other replica, when its Lease has run out", func(ctx context.Context) {
		install(ctx, presentChart)
		rolling := start(ctx, "rolling.yaml", sleeperV1)
		before := rolling.pods(ctx)
		budgets := map[string]*budget{"set": rolling.watch(ctx, "set"), "deployment": rolling.watch(ctx, "deployment")}
		lease := leader(ctx)
		dead := podOf(lease)

		rolling.apply(ctx, sleeperV2)
		Eventually(ctx, func(ctx context.Context) []string { return images(rolling.pods(ctx, "set")) }).Should(ContainElement(sleeperV2))
		Eventually(ctx, func(ctx context.Context) *coordinationv1.Lease {
			kill(ctx, dead)
			if now := leader(ctx); podOf(now) == dead {
				lease = now
			}
			return leader(ctx)
		}).WithPolling(100 * time.Millisecond).Should(Satisfy(func(now *coordinationv1.Lease) bool { return podOf(now) != dead && podOf(now) != "" }))

		taken := leader(ctx)
		Expect(*taken.Spec.LeaseTransitions).To(Equal(*lease.Spec.LeaseTransitions+1), "the Lease was taken once")
		duration := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
		vacant := taken.Spec.AcquireTime.Sub(lease.Spec.RenewTime.Time)
		// How late the other replica looks is up to the machine.
		AddReportEntry("No manager led for", vacant.String())
		Expect(vacant).To(BeNumerically(">=", duration), "the Lease had run out")

		rolling.finish(ctx)
		after := rolling.pods(ctx)
		Expect(observe.Differences(before, after, 1)).To(BeEmpty())
		Expect(images(after)).To(HaveEach(sleeperV2))
		for app, budget := range budgets {
			Expect(budget.least(ctx)).To(Equal(2), "of 3 pods of %s, 1 may be unavailable", app)
		}
	})
})

// leader returns the Lease of the replicas.
func leader(ctx context.Context) *coordinationv1.Lease {
	GinkgoHelper()
	leases := &coordinationv1.LeaseList{}
	Expect(api.List(ctx, leases, client.InNamespace(releaseNamespace))).To(Succeed())
	Expect(leases.Items).To(HaveLen(1))
	return &leases.Items[0]
}

// podOf returns the pod that holds a Lease.
func podOf(lease *coordinationv1.Lease) string {
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name
}

// kill sends SIGKILL to what runs of a pod of the manager.
func kill(ctx context.Context, name string) {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: releaseNamespace, Name: name}, pod)).To(Succeed())
	if status := pod.Status.ContainerStatuses[0]; status.State.Running != nil {
		_, err := labtools.KillContainer(status.ContainerID)
		Expect(err).NotTo(HaveOccurred())
	}
}

// budget counts how many pods of a workload serve at least.
type budget struct {
	events watch.Interface
	counts chan int
}

// watch begins to count the pods of a workload that are ready: all of them.
func (w workloads) watch(ctx context.Context, app string) *budget {
	GinkgoHelper()
	list, err := kube.CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=" + app})
	Expect(err).NotTo(HaveOccurred())
	ready := map[string]bool{}
	for i := range list.Items {
		ready[list.Items[i].Name] = podutils.IsPodReady(&list.Items[i])
	}
	events, err := kube.CoreV1().Pods(w.namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{
		LabelSelector: "app=" + app, ResourceVersion: list.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	b := &budget{events: events, counts: make(chan int, 1)}
	DeferCleanup(events.Stop)
	go b.count(ready)
	return b
}

// count follows the watch to its end.
func (b *budget) count(ready map[string]bool) {
	least := len(ready)
	for event := range b.events.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		if !isPod {
			break
		}
		ready[pod.Name] = podutils.IsPodReady(pod) && event.Type != watch.Deleted
		serving := 0
		for _, isReady := range ready {
			if isReady {
				serving++
			}
		}
		least = min(least, serving)
	}
	b.counts <- least
}

// least ends the watch and returns how many pods there were at least.
func (b *budget) least(ctx context.Context) int {
	GinkgoHelper()
	b.events.Stop()
	least := 0
	Eventually(ctx, b.counts).Should(Receive(&least))
	return least
}
