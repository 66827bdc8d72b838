// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

func setEnv(set *appsv1beta1.StatefulSet) {
	set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LOG_LEVEL", Value: "debug"}}
}

func unsetEnv(set *appsv1beta1.StatefulSet) {
	set.Spec.Template.Spec.Containers[0].Env = nil
}

func pause(paused bool) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = paused }
}

func setPartition(n int32) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(n) }
}

// readyIs matches the condition Ready.
func readyIs(status metav1.ConditionStatus, reason string) OmegaMatcher {
	return WithTransform(func(set *appsv1beta1.StatefulSet) metav1.Condition {
		return conditionOf(set, appsv1beta1.ConditionReady)
	}, And(HaveField("Status", status), HaveField("Reason", reason)))
}

var _ = Describe("The partition", func() {
	It("keeps pods at their revision, also those that come back", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(2))
		w.setImage("nginx:latest")
		w.settle()
		canary := map[string]string{"sample-0": "nginx:alpine", "sample-1": "nginx:alpine", "sample-2": "nginx:latest"}
		Expect(w.images()).To(Equal(canary))
		status := w.status()
		Expect(status.CurrentRevision).NotTo(Equal(status.UpdateRevision))
		Expect(status).To(And(HaveField("CurrentReplicas", int32(2)), HaveField("UpdatedReplicas", int32(1))))
		Expect(w.refresh()).To(readyIs(metav1.ConditionTrue, appsv1beta1.ReasonPartitionReached))

		w.deletePod("sample-0")
		w.deletePod("sample-2")
		w.settle()
		Expect(w.images()).To(Equal(canary))
		Expect(w.pod("sample-0").Labels).To(HaveKeyWithValue("controller-revision-hash", status.CurrentRevision))

		w.change(setPartition(1))
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:alpine", "sample-1": "nginx:latest", "sample-2": "nginx:latest"}))
		w.change(setPartition(0))
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(Equal(same("nginx:latest")))
	})

	It("lets a canary be taken back, and is not ready before it is", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(2))
		w.setImage("nginx:latest")
		w.settle()
		w.setImage("nginx:alpine")
		w.reconcile()
		Expect(w.refresh()).To(readyIs(metav1.ConditionFalse, appsv1beta1.ReasonUpdating))
		w.settle()
		w.expectSettled(3)
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.restarts()).To(Equal(map[string]int32{"sample-0": 0, "sample-1": 0, "sample-2": 2}))
	})
})

var _ = Describe("The history", func() {
	It("keeps what is in use, and with revisionHistoryLimit 0 nothing else", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(2).With(func(set *appsv1beta1.StatefulSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](0) }))
		first := w.status().UpdateRevision
		w.kubelet.Away["sample-2"] = true
		w.setImage("nginx:latest")
		w.settle()
		w.setImage("nginx:third")
		w.settle()
		Expect(w.revisions()).To(And(HaveLen(2), HaveKey(first), HaveKey(w.status().UpdateRevision)), "no pod has come to the second")
		w.kubelet.Away["sample-2"] = false
		w.settle()
		w.setImage("nginx:fourth")
		w.kubelet.Away["sample-2"] = true
		w.settle()
		Expect(w.revisions()).To(HaveLen(3), "the first and the third run, the fourth is wanted")
		w.kubelet.Away["sample-2"] = false
		w.change(setPartition(0))
		w.settle()
		w.expectSettled(3)
		Expect(w.revisions()).To(And(HaveLen(1), HaveKey(w.status().UpdateRevision)))
	})
})

var _ = Describe("A paused update", func() {
	It("changes nothing, and goes on where it was", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(pause(true)))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.refresh()).To(readyIs(metav1.ConditionFalse, appsv1beta1.ReasonPaused))
		w.expectNoWrites()

		w.change(pause(false))
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})

	It("puts a pod back that was only drained", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:latest")
		w.reconcile()
		Expect(stage.PodConditionStatus(w.pod("sample-2"), appsv1beta1.InPlaceUpdateReady)).To(Equal(corev1.ConditionFalse))
		w.change(pause(true))
		w.settle()
		Expect(stage.PodConditionStatus(w.pod("sample-2"), corev1.PodReady)).To(Equal(corev1.ConditionTrue))
		Expect(w.images()).To(Equal(same("nginx:alpine")))
	})

	It("finishes a pod that was changed", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.setImage("nginx:latest")
		for w.pod("sample-2").Spec.Containers[0].Image == "nginx:alpine" {
			w.reconcile()
			w.kubelet.Sync(w.ctx)
		}
		w.change(pause(true))
		w.settle()
		Expect(stage.PodConditionStatus(w.pod("sample-2"), corev1.PodReady)).To(Equal(corev1.ConditionTrue))
		Expect(w.status()).To(HaveField("UpdatedAvailableReplicas", int32(1)))
		Expect(w.images()).To(HaveKeyWithValue("sample-1", "nginx:alpine"))
	})
})

var _ = Describe("OnDelete", func() {
	It("gives a pod the new revision when it is deleted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.refresh()).To(readyIs(metav1.ConditionTrue, appsv1beta1.ReasonOnDelete))
		w.deletePod("sample-1")
		w.settle()
		Expect(w.images()).To(Equal(map[string]string{"sample-0": "nginx:alpine", "sample-1": "nginx:latest", "sample-2": "nginx:alpine"}))
		w.deletePod("sample-0")
		w.deletePod("sample-2")
		w.settle()
		w.expectSettled(3)
	})
})

var _ = Describe("What cannot change in place", func() {
	It("is recreated one by one, and an event names the field", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		uids := w.uids()
		w.change(setEnv)
		w.settleWith(func() {
			ready := 0
			for _, pod := range w.pods() {
				if stage.PodConditionStatus(pod, corev1.PodReady) == corev1.ConditionTrue {
					ready++
				}
			}
			Expect(ready).To(BeNumerically(">=", 2))
		})
		w.expectSettled(3)
		for name, uid := range w.uids() {
			Expect(uid).NotTo(Equal(uids[name]), name)
			Expect(w.pod(name).Spec.Containers[0].Env).To(HaveLen(1))
		}
		Expect(w.manager.Writes("delete Pod")).To(Equal([]string{"delete Pod sample-2", "delete Pod sample-1", "delete Pod sample-0"}))
		Expect(w.recorder.Events(appsv1beta1.ReasonRecreating)).To(ContainElement(And(
			HaveField("Kind", "StatefulSet"), HaveField("Note", ContainSubstring("spec.containers[main].env")))))
		Expect(w.status()).To(And(HaveField("Recreated", int32(3)), HaveField("InPlaceUpdated", int32(0))))
	})

	It("is recreated in any case with ReCreate", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.RecreatePodUpdateStrategyType))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.restarts()).To(Equal(same[int32](0)))
		for name, uid := range w.uids() {
			Expect(uid).NotTo(Equal(uids[name]), name)
		}
		Expect(w.recorder.Events(appsv1beta1.ReasonRecreating)).To(ContainElement(HaveField("Note", ContainSubstring("podUpdatePolicy"))))
	})

	It("is left alone with InPlaceOnly, and what blocks it is named until it is reverted", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
		uids := w.uids()
		w.change(setEnv)
		w.settle()
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](0)))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", "FieldImmutable"),
			HaveField("Message", And(ContainSubstring("sample-2"), ContainSubstring("spec.containers[main].env")))))
		Expect(w.status().Blockers).To(HaveLen(3))
		Expect(w.recorder.Events("FieldImmutable")).To(ContainElement(HaveField("Note", ContainSubstring("spec.containers[main].env"))))
		said := len(w.recorder.All)
		w.expectNoWrites()
		Expect(w.recorder.All).To(HaveLen(said), "it is said once")

		w.change(unsetEnv)
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(3)
		Expect(w.uids()).To(Equal(uids))
	})
})
