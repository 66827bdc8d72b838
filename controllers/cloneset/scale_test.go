// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/test/stage"
)

func claimTemplate() corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// claiming gives each pod a claim, which the next pod takes over, or not.
func claiming(reuse bool) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate()}
		set.Spec.ScaleStrategy.EnablePVCReuse = ptr.To(reuse)
	}
}

// blindTo is a client whose cache has not seen a pod yet.
type blindTo struct {
	client.Client

	pod string
}

func (b blindTo) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := b.Client.List(ctx, list, opts...); err != nil {
		return err
	}
	if pods, ok := list.(*corev1.PodList); ok {
		pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Name == b.pod })
	}
	return nil
}

func deleteFirst(pods ...string) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) { set.Spec.ScaleStrategy.PodsToDelete = pods }
}

var _ = Describe("The number of pods", func() {
	It("follows replicas, and goes down by the pods that the spec names", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Replicas(2))
		w.scale(5)
		w.settle()
		w.expectSettled(5)
		named := w.podNames()[1:3]
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.Replicas = ptr.To[int32](3)
			deleteFirst(named...)(set)
		})
		w.settle()
		w.expectSettled(3)
		Expect(w.podNames()).NotTo(ContainElements(named))
		Expect(w.refresh().Spec.ScaleStrategy.PodsToDelete).To(Equal(named), "the list is the user's")
		w.expectNoWrites()
	})

	It("goes down by what the annotation of a pod says it costs", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		cheap := w.podNames()[2]
		w.changePod(cheap, func(pod *corev1.Pod) { metav1.SetMetaDataAnnotation(&pod.ObjectMeta, corev1.PodDeletionCost, "-1") })
		w.scale(3)
		w.settle()
		w.expectSettled(3)
		Expect(w.podNames()).NotTo(ContainElement(cheap))
	})

	It("stays when pods are asked to be deleted: others come, within the budget", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		before := w.podNames()
		w.changePod(before[0], func(pod *corev1.Pod) { pod.Labels[appsv1beta1.SpecifiedDeleteKey] = "true" })
		w.change(deleteFirst(before[1], before[2], "sample-nosuc"))
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 3)) })
		w.expectSettled(4)
		Expect(w.podNames()).To(ContainElement(before[3]))
		Expect(w.podNames()).NotTo(ContainElements(before[:3]))
		Expect(w.recorder.Events(appsv1beta1.ReasonRecreating)).To(ContainElements(
			HaveField("Note", ContainSubstring("the workload names it")), HaveField("Note", ContainSubstring("the label"))))
		w.expectNoWrites()
	})

	It("makes up for asked pods by others beyond replicas", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxSurge(1).MaxUnavailable(0).Partition(4))
		w.setImage("nginx:latest")
		w.settle()
		w.change(deleteFirst(w.podNames()[0]))
		w.settleWith(func() { Expect(w.available()).To(BeNumerically(">=", 4)) })
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 4}), "the partition keeps all")
		w.expectNoWrites()
	})

	DescribeTable("goes to few and back, with what the partition keeps", func(ctx context.Context, partition string, night int32) {
		w := newWorld(ctx)
		w.create(reference().With(partitioned(partition)))
		before := w.status().CurrentRevision
		w.setImage("nginx:latest")
		w.settle()
		w.scale(night)
		w.settle()
		Expect(w.status()).To(And(HaveField("CurrentRevision", before), HaveField("UpdateRevision", Not(Equal(before)))))
		w.scale(4)
		w.settle()
		Expect(w.images()).To(Equal(map[string]int{"nginx:alpine": 2, "nginx:latest": 2}))

		w.change(func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
		w.settle()
		w.expectSettled(4)
		Expect(w.status().CurrentRevision).NotTo(Equal(before))
	},
		Entry("none", short.Spec, "2", int32(0)), Entry("one", "2", int32(1)), Entry("as many as it keeps", "2", int32(2)),
		Entry("none, a percentage", "50%", int32(0)), Entry("one, a percentage", "50%", int32(1)),
	)

	It("goes up as far as scaleStrategy.maxUnavailable allows at a time", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Replicas(5).With(func(set *appsv1beta1.CloneSet) {
			set.Spec.ScaleStrategy.MaxUnavailable = ptr.To(intstr.FromInt32(2))
		}))
		w.reconcile()
		Expect(w.pods()).To(HaveLen(2))
		Expect(w.recorder.Events("ScaleUpLimited")).NotTo(BeEmpty())
		w.settle()
		w.expectSettled(5)
	})

	It("takes the place of pods that have ended or are lost", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference())
		names := w.podNames()
		w.kubelet.Evict(w.ctx, w.pods()[names[0]])
		w.kubelet.Away[names[1]] = true
		w.deletePod(names[1])
		w.clock.Step(time.Hour)
		w.settle()
		Expect(w.active()).To(HaveLen(4))
		Expect(w.available()).To(Equal(4))
		Expect(w.pods()).NotTo(HaveKey(names[0]))
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Message", ContainSubstring(names[1])))
		w.expectNoWrites()
	})
})

var _ = Describe("The claims of a CloneSet", func() {
	It("go with their pods", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		w.expectClaims()
		for name, claim := range w.claims() {
			Expect(name).To(Equal("data-sample-" + claim.Labels[appsv1beta1.CloneSetInstanceIDKey]))
		}
		w.scale(2)
		w.reconcile()
		w.expectEntrusted(2)
		w.settle()
		w.expectClaims()
		w.deletePod(w.podNames()[0])
		w.reconcile()
		w.expectEntrusted(1)
		w.settle()
		w.expectSettled(2)
		w.expectClaims()
		w.change(deleteFirst(w.podNames()[0]))
		w.reconcile()
		w.expectEntrusted(1)
		w.settle()
		w.expectClaims()
		w.expectNoWrites()
		Expect(w.manager.Writes("delete PersistentVolumeClaim")).To(BeEmpty())
	})

	It("go when a pod was gone before the manager saw it", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		Expect(w.api.Delete(w.ctx, w.pods()[w.podNames()[0]], client.GracePeriodSeconds(0))).To(Succeed())
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
	})

	It("stay where a cache that is behind shows no pod", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		hidden, claims := w.podNames()[0], w.claims()
		w.reconciler = cloneset.NewReconciler(blindTo{w.manager, hidden}, w.live, w.recorder, w.clock, w.nextID)
		w.reconciler.PullAs(stage.NoPulls())
		w.reconcile()
		for name, claim := range claims {
			Expect(w.claims()[name].OwnerReferences).To(Equal(claim.OwnerReferences), name)
		}
		w.startManager(shared)
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
	})

	It("stay whatever becomes of other fields", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(func(set *appsv1beta1.CloneSet) {
			claiming(true)(set)
			set.Spec.ScaleStrategy.EnablePVCReuse = nil
			set.Spec.UpdateStrategy = appsv1beta1.CloneSetUpdateStrategy{CloneSetUpdateParameters: appsv1beta1.CloneSetUpdateParameters{Paused: true}}
		}))
		w.scale(2)
		w.settle()
		Expect(w.claims()).To(HaveLen(4))
		for _, strategy := range []appsv1beta1.CloneSetUpdateStrategy{
			{}, {Type: appsv1beta1.RollingUpdateCloneSetUpdateStrategyType, RollingUpdate: &appsv1beta1.RollingUpdateCloneSetStrategy{}},
			{Type: appsv1beta1.OnDeleteCloneSetUpdateStrategyType},
		} {
			w.change(func(set *appsv1beta1.CloneSet) { set.Spec.UpdateStrategy = strategy })
			w.settle()
			Expect(w.claims()).To(HaveLen(4))
			w.expectNoWrites()
		}
	})

	It("are taken over by the next pods where they are reused, when the pods before are gone", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Replicas(4).With(claiming(true)))
		before, claims := w.podNames(), w.claims()
		for _, name := range before {
			w.deletePod(name)
		}
		for range 3 {
			w.reconcile()
			w.clock.Step(time.Second)
		}
		Expect(w.podNames()).To(Equal(before), "they terminate, and have their claims")
		w.settle()
		w.expectSettled(4)
		Expect(w.podNames()).To(Equal(before), "the same instance IDs")
		Expect(w.claims()).To(HaveLen(len(claims)))
		for name, claim := range w.claims() {
			Expect(claim.UID).To(Equal(claims[name].UID), name)
		}
	})

	It("stay where they are reused, and wait for the next pod", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(true)))
		before := w.podNames()
		w.scale(2)
		w.settle()
		Expect(w.claims()).To(HaveLen(4))
		w.expectNoWrites()
		w.scale(5)
		w.settle()
		w.expectSettled(5)
		Expect(w.podNames()).To(ContainElements(before), "IDs come back with their claims")
		w.expectClaims()
	})

	It("belong to no other pod where the spec names their pods", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(true)))
		named := w.podNames()[0]
		w.change(deleteFirst(named))
		w.settle()
		w.expectSettled(4)
		Expect(w.podNames()).NotTo(ContainElement(named))
	})

	It("come back from a pod that stays after all", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		w.scale(3)
		w.manager.Before = func(write string, _ client.Object) error {
			if strings.HasPrefix(write, "delete Pod") {
				return errors.New("refused")
			}
			return nil
		}
		w.reconcile()
		Expect(w.pods()).To(HaveLen(4))
		Expect(w.condition(appsv1beta1.ConditionFailedScale)).To(HaveField("Message", ContainSubstring("refused")))
		w.manager.Before = nil
		w.scale(4)
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
	})
})
