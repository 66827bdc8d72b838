// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

func withClaim(size string) func(*appsv1beta1.StatefulSet) {
	return func(set *appsv1beta1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", size)}
	}
}

// claims returns the UIDs of the claims of the namespace by name.
func (w *world) claims() map[string]types.UID {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(w.live.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	claims := map[string]types.UID{}
	for i := range list.Items {
		claims[list.Items[i].Name] = list.Items[i].UID
	}
	return claims
}

// bind gives a claim its volume, as large as it asked for.
func (w *world) bind(name string) {
	GinkgoHelper()
	claim := &corev1.PersistentVolumeClaim{}
	Expect(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, claim)).To(Succeed())
	before := claim.DeepCopy()
	claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
	Expect(w.api.Status().Patch(w.ctx, claim, client.MergeFrom(before))).To(Succeed())
}

var _ = Describe("Claims", func() {
	It("are made before their pods, and outlive them", short.Spec, func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(withClaim("1Gi")))
		Expect(w.claims()).To(And(HaveLen(3), HaveKey("data-sample-0"), HaveKey("data-sample-1"), HaveKey("data-sample-2")))
		all := w.manager.Writes("create P")
		Expect(slices.Index(all, "create PersistentVolumeClaim data-sample-2")).To(BeNumerically("<", slices.Index(all, "create Pod sample-2")))
		Expect(w.pod("sample-2").Spec.Volumes).To(ContainElement(HaveField("PersistentVolumeClaim",
			Equal(&corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-sample-2"}))))

		claims := w.claims()
		w.scale(1)
		w.settle()
		w.scale(3)
		w.settle()
		w.deletePod("sample-0")
		w.settle()
		w.expectSettled(3)
		Expect(w.claims()).To(Equal(claims))
	})

	It("are counted as compatible, and ready when the volume is there", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(withClaim("1Gi")))
		Expect(w.status().VolumeClaims).To(Equal([]appsv1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 3}}))
		w.bind("data-sample-0")
		w.bind("data-sample-1")
		w.reconcile()
		Expect(w.status().VolumeClaims).To(Equal([]appsv1beta1.VolumeClaimStatus{
			{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 2},
		}))

		// A larger template makes a new revision, which changes no pod but by name.
		uids := w.uids()
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		w.settle()
		Expect(w.status().VolumeClaims).To(Equal([]appsv1beta1.VolumeClaimStatus{{VolumeClaimName: "data"}}))
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](0)))
		Expect(w.revisions()).To(HaveLen(2))
	})

	It("that are being deleted hold up their pod, with the reason", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().With(withClaim("1Gi")))
		claim := &corev1.PersistentVolumeClaim{}
		Expect(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "data-sample-1"}, claim)).To(Succeed())
		old := claim.UID
		before := claim.DeepCopy()
		claim.Finalizers = append(claim.Finalizers, "example.io/hold")
		Expect(w.api.Patch(w.ctx, claim, client.MergeFrom(before))).To(Succeed())
		Expect(w.api.Delete(w.ctx, claim)).To(Succeed())
		w.deletePod("sample-1")
		w.kubelet.Sync(w.ctx)

		w.reconcileFailing()
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionFailedCreatePod).Message).To(And(
			ContainSubstring("sample-1"), ContainSubstring("claim data-sample-1 is being deleted")))
		Expect(w.podNames()).To(Equal([]string{"sample-0", "sample-2"}))

		Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(claim), claim)).To(Succeed())
		before = claim.DeepCopy()
		claim.Finalizers = nil
		Expect(w.api.Patch(w.ctx, claim, client.MergeFrom(before))).To(Succeed())
		// The view learns from its watch that the claim is gone.
		w.recover()
		w.settle()
		w.expectSettled(3)
		Expect(w.claims()["data-sample-1"]).NotTo(Equal(old))
	})

	It("are made again for a pod that waits for them", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().With(withClaim("1Gi")).Build())
		w.reconcile()
		old := w.claims()
		claim := &corev1.PersistentVolumeClaim{}
		Expect(w.api.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "data-sample-1"}, claim)).To(Succeed())
		before := claim.DeepCopy()
		claim.Finalizers = nil
		Expect(w.api.Patch(w.ctx, claim, client.MergeFrom(before))).To(Succeed())
		Expect(w.api.Delete(w.ctx, claim)).To(Succeed())

		w.reconcile()
		Expect(w.claims()).To(HaveKeyWithValue("data-sample-1", Not(Equal(old["data-sample-1"]))))
		Expect(w.claims()).To(HaveKeyWithValue("data-sample-0", old["data-sample-0"]))
		w.settle()
		w.expectSettled(3)
	})

	// The template of the old revision mounts what the new one has no claim for.
	It("of a pod that the partition keeps are those of its revision", func(ctx context.Context) {
		w := newWorld(ctx)
		w.create(reference().Partition(2).With(withClaim("1Gi")).With(func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}))
		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.VolumeClaimTemplates = nil
			set.Spec.Template.Spec.Containers[0].VolumeMounts = nil
		})
		w.settle()
		w.deletePod("sample-0")
		w.settle()
		Expect(w.podNames()).To(HaveLen(3))
		Expect(w.pod("sample-0").Spec.Volumes).To(ContainElement(HaveField("Name", "data")))
		Expect(w.pod("sample-2").Spec.Volumes).NotTo(ContainElement(HaveField("Name", "data")))
	})
})
