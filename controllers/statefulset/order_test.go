// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

var _ = Describe("OrderedReady", func() {
	It("creates each pod when those before it are ready", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.kubelet.Unready["sample-1"] = true
		w.apply(reference().OrderedReady().Build())
		w.settleWith(func() {
			pods := w.pods()
			for ordinal := 1; ordinal < len(pods); ordinal++ {
				if w.manager.Writes(fmt.Sprintf("create Pod sample-%d", ordinal)) == nil {
					continue
				}
				Expect(stage.PodConditionStatus(pods[fmt.Sprintf("sample-%d", ordinal-1)], corev1.PodReady)).To(Equal(corev1.ConditionTrue))
			}
		})
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-1"}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionProgressing).Reason).To(Equal(appsv1beta1.ReasonScaling))

		w.kubelet.Unready["sample-1"] = false
		w.settle()
		w.expectSettled(3)
		Expect(w.manager.Writes("create Pod")).To(Equal([]string{"create Pod sample-0", "create Pod sample-1", "create Pod sample-2"}))
	})

	// As OpenKruise and the native StatefulSet do: a pod that dies right after it
	// got ready must not have let the next one start.
	It("waits for minReadySeconds before the next pod", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().OrderedReady().With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = ptr.To[int32](30)
		}).Build())
		for range 5 {
			w.reconcile()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
		}
		Expect(stage.PodConditionStatus(w.pod("sample-0"), corev1.PodReady)).To(Equal(corev1.ConditionTrue))
		Expect(w.podNames()).To(Equal([]string{"sample-0"}))
		w.settle()
		w.expectSettled(3)
	})

	It("deletes one pod at a time, the highest first", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().OrderedReady().Replicas(4))
		w.kubelet.Away["sample-3"] = true
		w.scale(1)
		w.settle()
		Expect(w.manager.Writes("delete Pod")).To(Equal([]string{"delete Pod sample-3"}))
		Expect(w.podNames()).To(HaveLen(4))

		w.kubelet.Away["sample-3"] = false
		w.settle()
		w.expectSettled(1)
		Expect(w.manager.Writes("delete Pod")).To(Equal([]string{"delete Pod sample-3", "delete Pod sample-2", "delete Pod sample-1"}))
	})
})

var _ = Describe("Scaling", func() {
	It("leaves out reserved ordinals", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.ReserveOrdinals = []intstr.IntOrString{intstr.FromInt32(1)}
		})
		w.settle()
		w.expectSettled(3)
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-2", "sample-3"}))
		Expect(w.uids()).To(And(HaveKeyWithValue("sample-0", uids["sample-0"]), HaveKeyWithValue("sample-2", uids["sample-2"])))
	})

	It("in the middle of an update makes new pods new, and forgets those that go", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.setImage("nginx:latest")
		for range 4 { // sample-2 is under way
			w.reconcile()
			w.kubelet.Sync(w.ctx)
		}
		w.scale(4)
		w.settle()
		w.expectSettled(4)
		Expect(w.images()).To(HaveEach("nginx:latest"))
		Expect(w.restarts()).To(Equal(map[string]int32{"sample-0": 1, "sample-1": 1, "sample-2": 1, "sample-3": 0}))
		Expect(w.status()).To(And(HaveField("InPlaceUpdated", int32(3)), HaveField("Recreated", int32(1))))

		w.setImage("nginx:third")
		w.reconcile()
		w.scale(1)
		w.settle()
		w.expectSettled(1)
		Expect(w.uids()).To(Equal(map[string]types.UID{"sample-0": uids["sample-0"]}))
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:third"}))
	})

	It("to nothing and back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.scale(0)
		w.settle()
		w.expectSettled(0)
		w.expectNoWrites()
		w.scale(2)
		w.settle()
		w.expectSettled(2)
	})

	DescribeTable("to few and back, with what the partition keeps", func(ctx context.Context, night int32, change func(*appsv1beta1.StatefulSet)) {
		w := newWorld(ctx)
		w.create(reference().Replicas(4).Partition(2).With(change))
		before := w.status().CurrentRevision
		w.setImage("nginx:latest")
		w.settle()
		w.scale(night)
		w.settle()
		Expect(w.status()).To(And(HaveField("CurrentRevision", before), HaveField("UpdateRevision", Not(Equal(before)))))
		w.scale(4)
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{
			"sample-0": "nginx:alpine", "sample-1": "nginx:alpine", "sample-2": "nginx:latest", "sample-3": "nginx:latest",
		}))

		w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
		w.settle()
		w.expectSettled(4)
		Expect(w.status().CurrentRevision).NotTo(Equal(before))
	},
		Entry("none", short.Spec, int32(0), func(*appsv1beta1.StatefulSet) {}),
		Entry("one", int32(1), func(*appsv1beta1.StatefulSet) {}),
		Entry("as many as it keeps", int32(2), func(*appsv1beta1.StatefulSet) {}),
		Entry("none, kept by their number", int32(0), func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &appsv1beta1.UnorderedUpdateStrategy{}
		}),
	)

	It("to nothing in the middle of an update, and back at the new revision", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		before := w.status().CurrentRevision
		w.setImage("nginx:latest")
		w.reconcile()
		w.scale(0)
		w.settle()
		Expect(w.status()).To(And(HaveField("CurrentRevision", before), HaveField("UpdateRevision", Not(Equal(before)))), "no pod has proved it")
		w.scale(2)
		w.settle()
		w.expectSettled(2)
		Expect(w.images()).To(HaveEach("nginx:latest"))
		Expect(w.status().CurrentRevision).NotTo(Equal(before))
	})

	It("replaces a pod that was evicted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		before := w.uids()
		w.kubelet.Evict(w.ctx, w.pod("sample-1"))
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()["sample-1"]).NotTo(Equal(before["sample-1"]))
	})
})

var _ = Describe("The order of an update", func() {
	It("is from the highest ordinal down, one after the other", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.manager.Writes("patch Pod ")).To(Equal([]string{"patch Pod sample-2", "patch Pod sample-1", "patch Pod sample-0"}))
		all := w.manager.Writes("patch Pod")
		next := slices.Index(all, "patch Pod/status sample-1")
		Expect(all[:next]).To(HaveEach(HaveSuffix("sample-2")), "one is back in service before the next leaves: %s", strings.Join(all, ", "))
		Expect(all[:next]).To(HaveLen(3))
	})

	It("makes up for a pod that was deleted in the middle", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.setImage("nginx:latest")
		w.reconcile() // sample-2 is taken out of service
		w.deletePod("sample-1")
		w.reconcile()
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(HaveEach("nginx:latest"))
		Expect(w.restarts()).To(Equal(map[string]int32{"sample-0": 1, "sample-1": 0, "sample-2": 1}))
		Expect(w.uids()["sample-0"]).To(Equal(uids["sample-0"]))
		Expect(w.uids()["sample-1"]).NotTo(Equal(uids["sample-1"]))
	})

	It("goes on when the pod that is being updated is deleted", func(ctx context.Context) {
		for steps := 1; steps < 6; steps++ {
			w := newWorld(ctx)
			w.create(reference())
			uids := w.uids()
			w.setImage("nginx:latest")
			for range steps {
				w.reconcile()
				w.kubelet.Sync(w.ctx)
			}
			w.deletePod("sample-2")
			w.settle()
			w.expectSettled(3)
			Expect(w.images()).To(HaveEach("nginx:latest"), "after %d steps", steps)
			Expect(w.uids()["sample-0"]).To(Equal(uids["sample-0"]), "after %d steps", steps)
		}
	})
})
