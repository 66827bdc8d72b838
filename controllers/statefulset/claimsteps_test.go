// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
	"github.com/insitu-dev/insitu/volumes"
)

// counts returns what the status says of the claims of the first template.
func (w *world) counts() appsv1beta1.VolumeClaimStatus {
	GinkgoHelper()
	Expect(w.status().VolumeClaims).To(HaveLen(1))
	return w.status().VolumeClaims[0]
}

var _ = Describe("Claims that follow their template", func() {
	var w *world
	var s *storage
	start := func(ctx context.Context, expands bool, changes ...func(*appsv1beta1.StatefulSet)) {
		GinkgoHelper()
		w = newWorld(ctx)
		s = w.newStorage(expands)
		set := reference().With(s.following)
		for _, change := range changes {
			set.With(change)
		}
		w.apply(set.Build())
		s.settle()
		w.expectSettled(3)
		w.manager.Forget()
	}
	all := func(size string) map[string]string { return threeSizes(size, size, size) }

	It("grow one pod after the other, and touch no pod; then they cost no writes", func(ctx context.Context) {
		start(ctx, true)
		uids := w.uids()
		w.change(sized("2Gi"))
		s.settleWith(func() {
			moving := 0
			for _, size := range w.sizes() {
				if size == "2Gi/1Gi" {
					moving++
				}
			}
			Expect(moving).To(BeNumerically("<=", 1), "maxConcurrent is 25%% of 3, at least 1")
		})
		Expect(w.sizes()).To(Equal(all("2Gi/2Gi")))
		Expect(w.uids()).To(Equal(uids))
		Expect(w.restarts()).To(Equal(same[int32](0)))
		Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(Equal([]string{
			"patch PersistentVolumeClaim data-sample-2", "patch PersistentVolumeClaim data-sample-1", "patch PersistentVolumeClaim data-sample-0",
		}), "in the order of updates, once each")
		Expect(w.manager.Writes("delete")).To(BeEmpty())
		Expect(w.counts()).To(Equal(appsv1beta1.VolumeClaimStatus{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 3}))
		w.expectSettled(3)
		w.expectNoWrites()
	})

	It("grow before their pods get the image of the same revision", short.Spec, func(ctx context.Context) {
		start(ctx, true)
		w.change(func(set *appsv1beta1.StatefulSet) {
			sized("2Gi")(set)
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		s.settleWith(func() {
			sizes := w.sizes()
			for pod, image := range w.images() {
				if image == "nginx:latest" {
					Expect(sizes["data-"+pod]).To(Equal("2Gi/2Gi"), pod)
				}
			}
		})
		Expect(w.sizes()).To(Equal(all("2Gi/2Gi")))
		Expect(w.images()).To(Equal(same("nginx:latest")))
		Expect(w.restarts()).To(Equal(same[int32](1)))
		w.expectNoWrites()
	})

	It("hold their pod, in service, while nothing comes of it, and say so", func(ctx context.Context) {
		start(ctx, true)
		s.stalled = true
		w.change(func(set *appsv1beta1.StatefulSet) {
			sized("2Gi")(set)
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		s.rounds(5)
		Expect(w.sizes()).To(Equal(threeSizes("1Gi/1Gi", "1Gi/1Gi", "2Gi/1Gi")))
		Expect(w.images()).To(Equal(same("nginx:alpine")))
		Expect(w.blockerOf("sample-2")).To(And(HaveField("Step", "UpdatingClaims"), HaveField("Reason", volumes.ReasonClaimExpanding),
			HaveField("Message", ContainSubstring("claim data-sample-2: it grows from 1Gi to 2Gi"))))
		Expect(w.counts()).To(Equal(appsv1beta1.VolumeClaimStatus{VolumeClaimName: "data", CompatibleReplicas: 1, UpdatingReplicas: 1}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionReady).Status).To(Equal(metav1.ConditionFalse))

		// Overdue, it holds up nothing any more.
		w.clock.Step(10 * time.Minute)
		s.rounds(20)
		Expect(w.pod("sample-2").Spec.Containers[0].Image).To(Equal("nginx:latest"))
		Expect(w.counts().BlockedReplicas).To(BeNumerically(">=", 1))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(HaveField("Reason", volumes.ReasonClaimOverdue))
		s.stalled = false
		s.settle()
		Expect(w.sizes()).To(Equal(all("2Gi/2Gi")))
		Expect(w.images()).To(Equal(same("nginx:latest")))
		w.expectSettled(3)
	})

	It("that their class does not let grow are named, and hold up no image; nor a rollback", func(ctx context.Context) {
		start(ctx, false)
		w.change(func(set *appsv1beta1.StatefulSet) {
			sized("2Gi")(set)
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		s.rounds(30)
		Expect(w.images()).To(Equal(same("nginx:latest")))
		Expect(w.sizes()).To(Equal(all("1Gi/1Gi")))
		Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(BeEmpty(), "nothing is tried that is known to be refused")
		Expect(w.counts()).To(Equal(appsv1beta1.VolumeClaimStatus{VolumeClaimName: "data", BlockedReplicas: 3}))
		Expect(conditionOf(w.refresh(), appsv1beta1.ConditionStalled)).To(And(HaveField("Status", metav1.ConditionTrue),
			HaveField("Reason", volumes.ReasonExpansionNotAllowed), HaveField("Message", And(ContainSubstring("data-sample-"), ContainSubstring(s.class)))))
		Expect(w.blockerOf("sample-0").Message).To(And(ContainSubstring("claim data-sample-0"), ContainSubstring(s.class), ContainSubstring("allowVolumeExpansion")))
		Expect(w.recorder.Events(volumes.ReasonExpansionNotAllowed)).NotTo(BeEmpty())
		w.manager.Forget()
		for range 10 {
			w.reconcile()
			w.clock.Step(time.Minute)
		}
		Expect(w.manager.Writes("")).To(BeEmpty(), "what stays blocked costs no writes")

		w.change(sized("1Gi"))
		s.settle()
		w.expectSettled(3)
		Expect(w.counts()).To(Equal(appsv1beta1.VolumeClaimStatus{VolumeClaimName: "data", CompatibleReplicas: 3, CompatibleReadyReplicas: 3}))
		w.expectNoWrites()
	})

	It("grow when their class lets them later", func(ctx context.Context) {
		start(ctx, false)
		w.change(sized("2Gi"))
		s.rounds(3)
		class := &storagev1.StorageClass{}
		Expect(w.api.Get(w.ctx, client.ObjectKey{Name: s.class}, class)).To(Succeed())
		class.AllowVolumeExpansion = ptr.To(true)
		Expect(w.api.Update(w.ctx, class)).To(Succeed())
		s.awaitExpansion()
		s.settle()
		Expect(w.sizes()).To(Equal(all("2Gi/2Gi")))
	})

	It("that a quota refuses are asked for again and again; image and attributes go on", func(ctx context.Context) {
		start(ctx, true)
		gold := w.attributes("gold")
		hard := corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse("3Gi")}
		quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "storage"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
		Expect(w.api.Create(w.ctx, quota)).To(Succeed())
		quota.Status = corev1.ResourceQuotaStatus{Hard: hard, Used: hard}
		Expect(w.api.Status().Update(w.ctx, quota)).To(Succeed())
		Eventually(func() error {
			claim := w.claim("data-sample-0")
			claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
			return w.api.Update(w.ctx, claim, client.DryRunAll, client.DisableReadYourWritesConsistency)
		}).Should(MatchError(ContainSubstring("exceeded quota")))
		w.change(func(set *appsv1beta1.StatefulSet) {
			sized("2Gi")(set)
			set.Spec.VolumeClaimTemplates[0].Spec.VolumeAttributesClassName = &gold
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		for range 40 {
			_, _ = w.tryReconcile()
			w.clock.Step(time.Second)
			w.kubelet.Sync(w.ctx)
			s.sync()
		}
		Expect(w.images()).To(Equal(same("nginx:latest")))
		for name := range all("") {
			Expect(w.claim(name).Status.CurrentVolumeAttributesClassName).To(HaveValue(Equal(gold)), name)
		}
		Expect(w.sizes()).To(Equal(all("1Gi/1Gi")))
		Expect(w.blockerOf("sample-1")).To(And(HaveField("Reason", volumes.ReasonClaimRefused), HaveField("Message", ContainSubstring("exceeded quota"))))
		Expect(w.counts().BlockedReplicas).To(Equal(int32(3)))
		Expect(w.recorder.Events(volumes.ReasonClaimRefused)).NotTo(BeEmpty())

		Expect(w.api.Delete(w.ctx, quota)).To(Succeed())
		s.awaitExpansion()
		Eventually(func() map[string]string {
			for range 3 {
				_, _ = w.tryReconcile()
				w.clock.Step(10 * time.Minute)
				s.sync()
			}
			return w.sizes()
		}).Should(Equal(all("2Gi/2Gi")))
	})

	It("that cannot grow as much do so as far as they can: a smaller size, and a rollback", func(ctx context.Context) {
		start(ctx, true)
		s.limit = resource.MustParse("3Gi")
		w.change(func(set *appsv1beta1.StatefulSet) {
			sized("4Gi")(set)
			set.Spec.Template.Spec.Containers[0].Image = "nginx:latest"
		})
		s.settle()
		Expect(w.images()).To(Equal(same("nginx:latest")))
		Expect(w.sizes()).To(Equal(all("4Gi/1Gi")))
		Expect(w.counts()).To(Equal(appsv1beta1.VolumeClaimStatus{VolumeClaimName: "data", CompatibleReplicas: 3, BlockedReplicas: 3}))
		Expect(w.blockerOf("sample-0")).To(And(HaveField("Reason", volumes.ReasonExpansionInfeasible), HaveField("Message", And(
			ContainSubstring("claim data-sample-0"), ContainSubstring("it is too much"), ContainSubstring("more than 1Gi")))))
		w.expectNoWrites()

		w.change(sized("1Gi"))
		s.settle()
		w.expectSettled(3)
		Expect(w.sizes()).To(Equal(all("4Gi/1Gi")), "a rollback asks for nothing")
		w.expectNoWrites()

		w.change(sized("2560Mi"))
		s.settle()
		w.expectSettled(3)
		Expect(w.sizes()).To(Equal(all("2560Mi/2560Mi")))
	})

	It("of pods that the partition keeps are left alone, and so are those of a paused set and of OnDelete", func(ctx context.Context) {
		start(ctx, true, func(set *appsv1beta1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To[int32](2) })
		w.change(sized("2Gi"))
		s.settle()
		Expect(w.sizes()).To(Equal(threeSizes("1Gi/1Gi", "1Gi/1Gi", "2Gi/2Gi")))

		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.Partition, set.Spec.UpdateStrategy.RollingUpdate.Paused = nil, true
		})
		s.settle()
		Expect(w.sizes()).To(Equal(threeSizes("1Gi/1Gi", "1Gi/1Gi", "2Gi/2Gi")))

		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		})
		s.settle()
		Expect(w.sizes()).To(Equal(threeSizes("1Gi/1Gi", "1Gi/1Gi", "2Gi/2Gi")))
		Expect(w.manager.Writes("patch PersistentVolumeClaim")).To(Equal([]string{"patch PersistentVolumeClaim data-sample-2"}))

		w.change(func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
			set.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPVCDeleteVolumeClaimUpdateStrategyType
		})
		s.settle()
		Expect(w.sizes()).To(Equal(threeSizes("1Gi/1Gi", "1Gi/1Gi", "2Gi/2Gi")), "OnDelete for claims")
		Expect(w.counts()).To(Equal(appsv1beta1.VolumeClaimStatus{VolumeClaimName: "data", CompatibleReplicas: 1, CompatibleReadyReplicas: 1}))
		w.expectNoWrites()
	})

	It("that grow only while they are not in use have their pods recreated, one at a time", func(ctx context.Context) {
		start(ctx, true)
		s.offline = true
		uids := w.uids()
		w.change(sized("2Gi"))
		s.settleWith(func() {
			Expect(len(w.pods())).To(BeNumerically(">=", 2))
			// No pod comes back before its volume has grown.
			for name, pod := range w.pods() {
				if pod.UID != uids[name] {
					Expect(w.sizes()["data-"+name]).To(Equal("2Gi/2Gi"), name)
				}
			}
		})
		Expect(w.sizes()).To(Equal(all("2Gi/2Gi")))
		for name, uid := range w.uids() {
			Expect(uid).NotTo(Equal(uids[name]), name)
		}
		Expect(w.manager.Writes("delete Pod")).To(HaveLen(3))
		w.expectSettled(3)
		w.expectNoWrites()
	})

	It("that grow only while they are not in use are named, where pods are kept", func(ctx context.Context) {
		start(ctx, true, func(set *appsv1beta1.StatefulSet) {
			set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
		})
		s.offline = true
		uids := w.uids()
		w.change(sized("2Gi"))
		s.settle()
		Expect(w.uids()).To(Equal(uids))
		Expect(w.blockerOf("sample-2")).To(And(HaveField("Reason", volumes.ReasonVolumeInUse), HaveField("Message", ContainSubstring("InPlaceOnly"))))
		w.expectNoWrites()
	})

	It("come up at the new size where pods are new", func(ctx context.Context) {
		start(ctx, true)
		s.stalled = true
		w.change(func(set *appsv1beta1.StatefulSet) {
			sized("2Gi")(set)
			set.Spec.Replicas = ptr.To[int32](4)
		})
		s.rounds(6)
		Expect(w.sizes()).To(HaveKeyWithValue("data-sample-3", "2Gi/2Gi"))
		s.stalled = false
		s.settle()
		w.expectSettled(4)
	})

	It("have their pods recreated under control when a template is added or removed", func(ctx context.Context) {
		start(ctx, true)
		for _, names := range [][]string{{"data", "log"}, {"log"}} {
			uids := w.uids()
			w.change(func(set *appsv1beta1.StatefulSet) {
				templates := []corev1.PersistentVolumeClaim{}
				for _, name := range names {
					template := claimTemplate(name, "1Gi")
					template.Spec.StorageClassName = &s.class
					templates = append(templates, template)
				}
				set.Spec.VolumeClaimTemplates = templates
			})
			s.settleWith(func() { Expect(len(w.pods())).To(BeNumerically(">=", 2)) })
			w.expectSettled(3)
			for name, pod := range w.pods() {
				Expect(pod.UID).NotTo(Equal(uids[name]), name)
				has := []string{}
				for _, volume := range pod.Spec.Volumes {
					if volume.PersistentVolumeClaim != nil {
						has = append(has, strings.TrimSuffix(volume.PersistentVolumeClaim.ClaimName, "-"+name))
					}
				}
				Expect(slices.Sorted(slices.Values(has))).To(Equal(names), name)
			}
		}
		Expect(w.claims()).To(HaveLen(6), "no controller deletes the claims of a template that was removed")
		w.expectNoWrites()
	})
})
