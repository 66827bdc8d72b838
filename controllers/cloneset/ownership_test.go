// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

// disown removes the owner references of an object, as the garbage collector does
// with --cascade=orphan.
func (w *world) disown(obj client.Object) {
	GinkgoHelper()
	before := obj.DeepCopyObject().(client.Object)
	obj.SetOwnerReferences(nil)
	Expect(w.api.Patch(w.ctx, obj, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("A pod of a CloneSet", func() {
	It("is taken over with its revision and its claims when the set is made again", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		uids := w.uids()
		Expect(w.api.Delete(w.ctx, w.set, client.PropagationPolicy(metav1.DeletePropagationBackground))).To(Succeed())
		for _, pod := range w.pods() {
			w.disown(pod)
		}
		for _, revision := range w.revisions() {
			w.disown(&revision)
		}
		for _, claim := range w.claims() {
			w.disown(claim)
		}
		w.apply(reference().With(claiming(false)))
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
		Expect(w.uids()).To(Equal(uids))
		w.setImage("nginx:latest")
		w.settle()
		w.expectSettled(4)
		Expect(w.uids()).To(Equal(uids), "in place")
	})

	It("is released with its claim when it loses its labels, and comes back with them", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		stray := w.podNames()[0]
		w.changePod(stray, func(pod *corev1.Pod) { delete(pod.Labels, "app") })
		w.settle()
		Expect(w.pods()).To(HaveLen(5))
		Expect(w.pods()[stray].OwnerReferences).To(BeEmpty())
		Expect(w.claims()["data-"+stray].OwnerReferences).To(BeEmpty())
		w.expectNoWrites()

		w.changePod(stray, func(pod *corev1.Pod) { pod.Labels["app"] = "sample" })
		w.settle()
		w.expectSettled(4)
		w.expectClaims()
	})

	It("is taken over by its labels, whatever its name is, and without its claim", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(claiming(false)))
		claim := claimTemplate()
		claim.Namespace, claim.Name = w.namespace, "data-mine"
		Expect(w.api.Create(w.ctx, &claim)).To(Succeed())
		mine := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "mine", Labels: map[string]string{"app": "sample"}},
			Spec: corev1.PodSpec{
				Containers: []corev1.Container{{Name: "main", Image: "nginx:alpine"}},
				Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name},
				}}},
			},
		}
		Expect(w.api.Create(w.ctx, mine)).To(Succeed())
		pause := func(paused bool) func(*appsv1beta1.CloneSet) {
			return func(set *appsv1beta1.CloneSet) {
				set.Spec.Replicas, set.Spec.UpdateStrategy.RollingUpdate.Paused = ptr.To[int32](5), paused
			}
		}
		w.change(pause(true))
		w.settle()
		Expect(metav1.IsControlledBy(w.pods()["mine"], w.set)).To(BeTrue())
		Expect(w.pods()).To(HaveLen(5), "it is one of the replicas")
		w.change(pause(false))
		w.settle()
		w.expectSettled(5)
		Expect(w.pods()).NotTo(HaveKey("mine"), "its revision is not known, so it is recreated")
		Expect(w.claims()["data-mine"].OwnerReferences).To(BeEmpty(), "it is not the set's, and stays")
	})
})

var _ = Describe("A settled CloneSet", func() {
	It("costs no writes, also after a restart of the manager", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().MaxSurge(1).With(partitioned("50%")).With(claiming(true)).With(deadline(600)))
		w.setImage("nginx:latest")
		w.settle()
		w.expectNoWrites()
		w.startManager(newView())
		w.expectNoWrites()
	})

	It("reports what cannot be carried out", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Policy(appsv1beta1.InPlaceOnlyPodUpdateStrategyType))
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "B"}}
		})
		w.settle()
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
		Expect(w.status().Blockers).To(HaveLen(4))
	})
})
