// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

// crowded returns how many pods there are on the nodes that have more than one.
func (w *world) crowded() map[string]int {
	GinkgoHelper()
	count := map[string]int{}
	for _, pod := range w.active() {
		count[pod.Spec.NodeName]++
	}
	for node, pods := range count {
		if pods < 2 {
			delete(count, node)
		}
	}
	return count
}

// serving returns how many pods serve on each node: the one that was there before, and one that has
// been ready for 10 seconds.
func (w *world) serving(before map[string]types.UID) map[string]int {
	GinkgoHelper()
	count := map[string]int{}
	for node := range before {
		count[node] = 0
	}
	for _, pod := range w.active() {
		if podutils.IsPodAvailable(pod, 10, metav1.NewTime(w.clock.Now())) || before[pod.Spec.NodeName] == pod.UID {
			count[pod.Spec.NodeName]++
		}
	}
	return count
}

var _ = Describe("A surge of a DaemonSet", func() {
	It("lets the old pod of a node go when the new one is available", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("100%").MinReadySeconds(10))
		before := w.uids()
		w.setImage("nginx:latest")
		most := 0
		w.settleWith(func() {
			most = max(most, len(w.crowded()))
			Expect(w.available()).To(BeNumerically(">=", 3))
			for node, count := range w.serving(before) {
				Expect(count).To(BeNumerically(">", 0), node)
			}
		})
		Expect(most).To(Equal(3))
		w.expectSettled(3)
		for node, uid := range w.uids() {
			Expect(before[node]).NotTo(Equal(uid), node)
		}
		Expect(w.images()).To(Equal(all("nginx:latest")))
		w.expectNoWrites()
	})

	It("goes on as many nodes at a time as it says", func(ctx context.Context) {
		for _, b := range []struct {
			name  string
			surge func(*appsv1beta1.DaemonSet)
		}{
			{"maxSurge 1", func(*appsv1beta1.DaemonSet) {}},
			{"Surging, of v1alpha1", func(set *appsv1beta1.DaemonSet) {
				set.Spec.UpdateStrategy.RollingUpdate = &appsv1beta1.RollingUpdateDaemonSetStrategy{
					RollingUpdateType: appsv1beta1.SurgingDaemonSetRollingUpdateType,
				}
			}},
		} {
			By(b.name)
			w := newWorld(ctx)
			w.create(reference().Surge("1").With(b.surge))
			w.setImage("nginx:latest")
			most := 0
			w.settleWith(func() {
				most = max(most, len(w.crowded()))
				Expect(w.available()).To(BeNumerically(">=", 3))
			})
			Expect(most).To(Equal(1))
			w.expectSettled(3)
			Expect(w.images()).To(Equal(all("nginx:latest")))
		}
	})

	It("leaves a revision that does not start, and takes the new pod back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1"))
		uids := w.uids()
		w.setImage("nginx:no-such-tag")
		w.settle()
		Expect(w.available()).To(Equal(3))
		Expect(w.pods()).To(HaveLen(4))
		Expect(w.crowded()).To(Equal(map[string]int{"node-3": 2}))
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("leaves a revision that does not start for a third one", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1"))
		w.setImage("nginx:no-such-tag")
		w.settle()
		w.setImage("nginx:latest")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 3)) })
		w.expectSettled(3)
		Expect(w.images()).To(Equal(all("nginx:latest")))
	})

	It("keeps the old pod while it is paused, and goes on after that", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1").MinReadySeconds(10))
		w.setImage("nginx:latest")
		w.reconcile()
		Expect(w.pods()).To(HaveLen(4))
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To(true) })
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:alpine", "node-3": "nginx:latest"}),
			"the node that was begun is finished")
		w.change(func(set *appsv1beta1.DaemonSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = nil })
		w.settle()
		w.expectSettled(3)
	})

	It("replaces a pod that does not serve beside the others", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1"))
		broken := w.on("node-1").Name
		w.kubelet.Unready[broken] = true
		w.settle()
		Expect(w.available()).To(Equal(2))
		w.setImage("nginx:latest")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 2)) })
		w.expectSettled(3)
		for _, pod := range w.pods() {
			Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
		}
	})

	It("respects a partition", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Surge("1").Partition("2"))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"node-1": "nginx:alpine", "node-2": "nginx:alpine", "node-3": "nginx:latest"}))
		w.expectNoWrites()
	})
})
