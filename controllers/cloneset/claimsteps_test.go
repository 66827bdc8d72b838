// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/volumes"
)

// following gives each pod a claim of a class that lets it grow, which follows its
// template.
func (w *world) following(reuse bool) func(*appsv1beta1.CloneSet) {
	GinkgoHelper()
	class := &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: w.namespace}, Provisioner: "csi.example.io", AllowVolumeExpansion: ptr.To(true),
	}
	Expect(w.api.Create(w.ctx, class)).To(Succeed())
	DeferCleanup(func() { Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, class))).To(Succeed()) })
	return func(set *appsv1beta1.CloneSet) {
		claiming(reuse)(set)
		set.Spec.VolumeClaimTemplates[0].Spec.StorageClassName = &class.Name
		set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
	}
}

func sized(size string) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) {
		set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// grow plays a driver for all claims, which expands at once, or only volumes that no
// pod uses.
func (w *world) grow(offline bool) {
	GinkgoHelper()
	used := map[string]bool{}
	for name := range w.pods() {
		used["data-"+name] = true
	}
	for name, claim := range w.claims() {
		asked, has := claim.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage()
		before := claim.DeepCopy()
		claim.Status.AllocatedResources = claim.Spec.Resources.Requests
		switch {
		case claim.Status.Phase != corev1.ClaimBound:
			claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
		case asked.Cmp(*has) <= 0 || len(claim.Status.Conditions) > 0 && used[name]:
			continue
		case offline && used[name]:
			claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{
				corev1.ResourceStorage: corev1.PersistentVolumeClaimControllerResizeInProgress,
			}
			claim.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{
				Type: corev1.PersistentVolumeClaimControllerResizeError, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(w.clock.Now()),
				Message: "failed to expand pvc with rpc error: code = FailedPrecondition desc = it is in use",
			}}
		default:
			claim.Status.Capacity, claim.Status.AllocatedResourceStatuses, claim.Status.Conditions = claim.Spec.Resources.Requests, nil, nil
		}
		Expect(w.api.Status().Patch(w.ctx, claim, client.MergeFrom(before))).To(Succeed())
	}
}

// awaitExpansion waits until the API server lets the claims grow.
func (w *world) awaitExpansion() {
	GinkgoHelper()
	for _, claim := range w.claims() {
		Eventually(func() error {
			return w.api.Patch(w.ctx, claim.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"resources":{"requests":{"storage":"9Gi"}}}}`)),
				client.DryRunAll, client.DisableReadYourWritesConsistency)
		}).Should(Succeed())
	}
}

// sizes counts the claims by what they ask for and have.
func (w *world) sizes() map[string]int {
	GinkgoHelper()
	sizes := map[string]int{}
	for _, claim := range w.claims() {
		sizes[fmt.Sprintf("%s/%s", claim.Spec.Resources.Requests.Storage(), claim.Status.Capacity.Storage())]++
	}
	return sizes
}

var _ = Describe("Claims that follow their template", func() {
	begin := func(ctx context.Context, reuse bool) *world {
		GinkgoHelper()
		w := newWorld(ctx)
		w.apply(reference().Replicas(3).With(w.following(reuse)))
		w.settleWith(func() { w.grow(false) })
		w.expectSettled(3)
		w.awaitExpansion()
		w.manager.Forget()
		return w
	}

	It("grow without a restart, with the image of the same revision, and then cost no writes", short.Spec, func(ctx context.Context) {
		w := begin(ctx, false)
		uids := w.uids()
		w.change(sized("2Gi"))
		w.settleWith(func() { w.grow(false) })
		w.expectSettled(3)
		Expect(w.sizes()).To(Equal(map[string]int{"2Gi/2Gi": 3}))
		Expect(w.uids()).To(Equal(uids))
		Expect(w.revisions()).To(HaveLen(2), "the templates are part of the revision")
		Expect(w.status().VolumeClaims).To(Equal([]appsv1beta1.VolumeClaimStatus{{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 3}}))
		w.expectNoWrites()

		w.change(func(set *appsv1beta1.CloneSet) { sized("3Gi")(set); newImage("nginx:latest")(set) })
		w.settleWith(func() { w.grow(false) })
		w.expectSettled(3)
		Expect(w.sizes()).To(Equal(map[string]int{"3Gi/3Gi": 3}))
		Expect(w.images()).To(Equal(map[string]int{"nginx:latest": 3}))
		Expect(w.uids()).To(Equal(uids))
		w.expectNoWrites()
	})

	It("make no revision and are left alone with OnDelete, as before", func(ctx context.Context) {
		w := newWorld(ctx)
		w.apply(reference().Replicas(3).With(claiming(false)))
		w.settleWith(func() { w.grow(false) })
		w.expectNoWrites()
		w.change(sized("2Gi"))
		w.settleWith(func() { w.grow(false) })
		Expect(w.revisions()).To(HaveLen(1))
		Expect(w.sizes()).To(Equal(map[string]int{"1Gi/1Gi": 3}))
		w.scale(4)
		w.settleWith(func() { w.grow(false) })
		Expect(w.sizes()).To(Equal(map[string]int{"1Gi/1Gi": 3, "2Gi/2Gi": 1}))
		w.expectNoWrites()
	})

	It("turned on later, follow a template that has changed before", func(ctx context.Context) {
		w := begin(ctx, false)
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
		})
		w.settle()
		w.change(sized("2Gi"))
		w.settle()
		Expect(w.sizes()).To(Equal(map[string]int{"1Gi/1Gi": 3}))
		uids := w.uids()
		w.change(func(set *appsv1beta1.CloneSet) {
			set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
		})
		w.settleWith(func() { w.grow(false) })
		w.expectSettled(3)
		Expect(w.sizes()).To(Equal(map[string]int{"2Gi/2Gi": 3}))
		Expect(w.uids()).To(Equal(uids))
	})

	It("that grow only while they are not in use, do so with their pods gone, if claims are reused", func(ctx context.Context) {
		w := begin(ctx, true)
		before := w.podNames()
		uids := w.uids()
		w.change(sized("2Gi"))
		w.settleWith(func() {
			w.grow(true)
			Expect(len(w.pods())).To(BeNumerically(">=", 2))
			Expect(w.claims()).To(HaveLen(3), "no claim is made, none goes")
		})
		w.expectSettled(3)
		Expect(w.sizes()).To(Equal(map[string]int{"2Gi/2Gi": 3}))
		Expect(w.podNames()).To(Equal(before), "on their own claims")
		for name, uid := range w.uids() {
			Expect(uid).NotTo(Equal(uids[name]), name)
		}
		w.expectNoWrites()
	})

	It("that grow only while they are not in use, never cost a pod whose data would go with it", func(ctx context.Context) {
		w := begin(ctx, false)
		uids := w.uids()
		w.change(func(set *appsv1beta1.CloneSet) { sized("2Gi")(set); newImage("nginx:latest")(set) })
		w.settleWith(func() { w.grow(true) })
		Expect(w.uids()).To(Equal(uids))
		Expect(w.images()).To(Equal(map[string]int{"nginx:latest": 3}), "the image is rolled out nevertheless")
		Expect(w.status().Blockers).To(HaveEach(And(HaveField("Reason", volumes.ReasonVolumeInUse), HaveField("Message", ContainSubstring("enablePVCReuse")))))
		Expect(w.status().VolumeClaims[0].BlockedReplicas).To(Equal(int32(3)))
		Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionTrue))
		w.expectNoWrites()
	})
})
