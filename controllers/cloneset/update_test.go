// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

var _ = Describe("An update of a CloneSet", func() {
	It("changes pods in place, within the budget, with three writes each", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		w.expectSettled(4)
		uids, first := w.uids(), w.status().UpdateRevision
		for name, pod := range w.pods() {
			Expect(pod.Labels).To(HaveKeyWithValue(appsv1beta1.CloneSetInstanceIDKey, name[len("sample-"):]))
			Expect(first).To(Equal("sample-" + pod.Labels[appsv1beta1.PodTemplateHashLabel]))
		}
		w.manager.Forget()
		w.setImage("nginx:latest")
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 3), "maxUnavailable is 1") })
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.images()).To(Equal(map[string]int{"nginx:latest": 4}))
		Expect(w.manager.Writes("patch Pod")).To(HaveLen(12), "not ready, changed, ready")
		Expect(w.manager.Writes("delete")).To(BeEmpty())
		status := w.status()
		Expect(status.InPlaceUpdated).To(BeEquivalentTo(4))
		Expect(status.Recreated).To(BeZero())
		for name, pod := range w.pods() {
			Expect(pod.Labels).To(HaveKeyWithValue(appsv1beta1.ControllerRevisionHashLabel, status.UpdateRevision), name)
			Expect("sample-"+pod.Labels[appsv1beta1.PodTemplateHashLabel]).To(Equal(status.UpdateRevision), name)
		}
		w.expectNoWrites()
	})

	It("updates one of four pods at a partition of 99%, and the others when it falls", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(partitioned("99%")))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 3, "nginx:latest": 1}))
		Expect(w.uids()).To(Equal(uids))
		status := w.status()
		Expect(status.ExpectedUpdatedReplicas).To(BeEquivalentTo(1))
		Expect(status.UpdatedReplicas).To(BeEquivalentTo(1))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", appsv1beta1.ReasonPartitionReached)))
		w.expectNoWrites()

		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids))
	})

	It("replaces pods with others beyond replicas, never too many and never too few", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.RecreatePodUpdateStrategyType).MaxSurge(2).MaxUnavailable(0))
		before := w.podNames()
		w.setImage("nginx:latest")
		most := 0
		w.settleWith(func() {
			most = max(most, len(w.active()))
			Expect(w.available()).To(BeNumerically(">=", 4))
		})
		Expect(most).To(Equal(6))
		w.expectSettled(4)
		Expect(w.podNames()).NotTo(ContainElements(before))
		Expect(w.images()).To(Equal(map[string]int{"nginx:latest": 4}))
		w.expectNoWrites()
	})

	It("makes one pod more where none may be unavailable in place", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxSurge(1).MaxUnavailable(0))
		before := w.uids()
		w.setImage("nginx:latest")
		w.settleWith(func() {
			Expect(w.available()).To(BeNumerically(">=", 4))
			Expect(len(w.active())).To(BeNumerically("<=", 5))
		})
		w.expectSettled(4)
		kept := 0
		for name, uid := range w.uids() {
			if before[name] == uid {
				kept++
			}
		}
		Expect(kept).To(Equal(3), "the pod beyond replicas took the place of the last one")
		w.expectNoWrites()
	})

	It("makes no pod more for changes in place where one may be unavailable", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxSurge(2).MaxUnavailable(1))
		uids := w.uids()
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids))
	})

	It("waits while it is paused, and takes surplus pods back", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.RecreatePodUpdateStrategyType).MaxSurge(2))
		w.setImage("nginx:latest")
		w.reconcile()
		Expect(w.active()).To(HaveLen(5), "four, one of them deleted, and two more")
		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = true })
		w.settle()
		Expect(w.pods()).To(HaveLen(4))
		Expect(w.images()).To(HaveKeyWithValue("nginx:alpine", 3), "old pods are not deleted while it is paused")
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Reason", appsv1beta1.ReasonPaused))
		w.expectNoWrites()
		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Paused = false })
		w.settle()
		w.expectSettled(4)
	})

	It("is left to the user's deletions with OnDelete", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.CloneSet) {
			set.Spec.UpdateStrategy = appsv1beta1.CloneSetUpdateStrategy{Type: appsv1beta1.OnDeleteCloneSetUpdateStrategyType}
		}))
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 4}))
		Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Reason", appsv1beta1.ReasonOnDelete))
		w.deletePod(w.podNames()[0])
		w.settle()
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 3, "nginx:latest": 1}))
	})

	It("deletes nothing that could not be made again, also with pods beyond replicas", short.Spec, func(ctx context.Context) {
		for _, surge := range []int32{0, 1} {
			w := newWorld(ctx)
			w.create(reference().MaxSurge(surge).MaxUnavailable(1))
			before := w.refresh().Spec.Template.DeepCopy()
			uids := w.uids()
			w.change(func(set *appsv1beta1.CloneSet) {
				set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "cahce", MountPath: "/more"}}
			})
			for range 20 {
				_, _ = w.tryReconcile()
				w.clock.Step(time.Second)
				w.kubelet.Sync(w.ctx)
				Expect(w.available()).To(Equal(4))
			}
			Expect(w.uids()).To(Equal(uids))
			Expect(w.condition(appsv1beta1.ConditionStalled)).To(And(
				HaveField("Status", metav1.ConditionTrue), HaveField("Message", ContainSubstring(`volumeMounts[0].name: Not found: "cahce"`))))

			w.change(func(set *appsv1beta1.CloneSet) { set.Spec.Template = *before })
			w.clock.Step(time.Hour)
			w.settle()
			w.expectSettled(4)
			Expect(w.uids()).To(Equal(uids))
		}
	})

	It("makes pods again at the revision that the partition keeps, whatever the API server says to the new one", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(partitioned("100%")))
		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.Template.Spec.PriorityClassName = "golden" })
		w.settle()
		asked := w.podNames()[0]
		w.changePod(asked, func(pod *corev1.Pod) { pod.Labels[appsv1beta1.SpecifiedDeleteKey] = "true" })
		w.settle()
		Expect(w.podNames()).NotTo(ContainElement(asked))
		Expect(w.available()).To(Equal(4))
		Expect(w.condition(appsv1beta1.ConditionStalled).Status).To(Equal(metav1.ConditionFalse))
	})

	It("goes back in the middle, whatever the partition says", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(2))
		uids, first := w.uids(), w.status().UpdateRevision
		w.setImage("nginx:latest")
		w.settle()
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 2, "nginx:latest": 2}))
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids))
		Expect(w.status().UpdateRevision).To(Equal(first))
	})

	It("leaves a revision that does not start, with new pods in the way", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.RecreatePodUpdateStrategyType).MaxSurge(2).MaxUnavailable(0))
		uids := w.uids()
		w.setImage("nginx:no-such-tag")
		w.settle()
		Expect(w.available()).To(Equal(4))
		Expect(w.pods()).To(HaveLen(6))
		w.setImage("nginx:alpine")
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids))
	})

	It("keeps as many revisions as it should", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Replicas(1).With(func(set *appsv1beta1.CloneSet) { set.Spec.RevisionHistoryLimit = ptr.To[int32](1) }))
		for _, image := range []string{"nginx:1", "nginx:2", "nginx:3"} {
			w.setImage(image)
			w.settle()
		}
		w.settle()
		Expect(w.revisions()).To(HaveLen(2))
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate()}
		})
		w.settle()
		w.expectNoWrites()
		Expect(w.revisions()).To(HaveLen(2), "claim templates make no revision")
	})
})
