// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// makeVolumes makes volumes for the claims of one namespace, in a class that is
// named after it. They are folders where each node of a lab has its own files,
// which go with the lab.
func makeVolumes(ctx context.Context, namespace string, count int) {
	GinkgoHelper()
	for i := range count {
		name := fmt.Sprintf("%s-%d", namespace, i)
		volume := &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PersistentVolumeSpec{
				StorageClassName:              namespace,
				AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
				PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
				PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{
					Path: filepath.Join("/var/lib/kubelet/e2e", name), Type: ptr.To(corev1.HostPathDirectoryOrCreate),
				}},
			},
		}
		Expect(api.Create(ctx, volume)).To(Succeed())
		DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(api.Delete(ctx, volume))).To(Succeed()) })
	}
}

// claiming is a set of two pods with a claim each, which take some seconds to
// stop, and a policy for the claims.
func claiming(namespace string, whenDeleted, whenScaled appsv1beta1.PersistentVolumeClaimRetentionPolicyType) *builders.StatefulSetBuilder {
	return builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
		s.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1beta1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: whenDeleted, WhenScaled: whenScaled,
		}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: ptr.To(namespace),
				AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			},
		}}
		spec := &s.Spec.Template.Spec
		spec.TerminationGracePeriodSeconds = ptr.To[int64](30)
		spec.Containers[0].Args = []string{"-ignore-term=5s"}
		spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	})
}

// claims returns the UIDs of the claims of a namespace by name. Those that are
// being deleted are left out.
func claims(ctx context.Context, namespace string) map[string]types.UID {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	found := map[string]types.UID{}
	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			found[list.Items[i].Name] = list.Items[i].UID
		}
	}
	return found
}

func scale(ctx context.Context, set *appsv1beta1.StatefulSet, replicas int32) {
	GinkgoHelper()
	change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Replicas = &replicas })
}

// waitGone waits until there is no pod with an ordinal.
func waitGone(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal int) {
	GinkgoHelper()
	key := client.ObjectKey{Namespace: set.Namespace, Name: fmt.Sprintf("%s-%d", set.Name, ordinal)}
	Eventually(ctx, func(ctx context.Context) bool {
		return apierrors.IsNotFound(api.Get(ctx, key, &corev1.Pod{}))
	}).Should(BeTrue(), "pod %s is still there", key.Name)
}

var _ = Describe("Claims", func() {
	const (
		keep   = appsv1beta1.RetainPersistentVolumeClaimRetentionPolicyType
		remove = appsv1beta1.DeletePersistentVolumeClaimRetentionPolicyType
	)
	var namespace string
	BeforeEach(func(ctx context.Context) {
		namespace = newNamespace(ctx)
		makeVolumes(ctx, namespace, 3)
	})
	current := func(ctx context.Context) map[string]types.UID { return claims(ctx, namespace) }
	// stay checks that the garbage collector leaves the claims.
	stay := func(ctx context.Context, want map[string]types.UID) {
		GinkgoHelper()
		Consistently(ctx, current).WithTimeout(8 * time.Second).Should(Equal(want))
	}

	It("go with the pod that a scale-down removes, if the policy says so", func(ctx context.Context) {
		set := create(ctx, claiming(namespace, keep, remove))
		before := current(ctx)
		Expect(before).To(HaveLen(2))
		scale(ctx, set, 1)
		delete(before, "data-sample-1")
		Eventually(ctx, current).Should(Equal(before))
		waitGone(ctx, set, 1)
		stay(ctx, before)

		scale(ctx, set, 2)
		waitSettled(ctx, set)
		before = current(ctx)
		Expect(before).To(HaveLen(2), "a new claim was made")
		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = keep })
		scale(ctx, set, 1)
		waitGone(ctx, set, 1)
		stay(ctx, before)
	})

	It("stay when the scale-down is taken back while the pod terminates", func(ctx context.Context) {
		set := create(ctx, claiming(namespace, remove, remove))
		before, uid := current(ctx), getPod(ctx, set, 1).UID
		// A finalizer keeps the pod for as long as it takes.
		DeferCleanup(func(ctx context.Context) { releaseAll(ctx, namespace) })
		holdAgain(ctx, set, 1)
		owners := func(ctx context.Context) []metav1.OwnerReference {
			return claimNamed(ctx, namespace, "data-sample-1").OwnerReferences
		}
		scale(ctx, set, 1)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(getPod(ctx, set, 1).DeletionTimestamp).NotTo(BeNil())
			g.Expect(owners(ctx)).To(ConsistOf(HaveField("UID", uid)))
		}).Should(Succeed())
		scale(ctx, set, 2)
		Eventually(ctx, owners).ShouldNot(ContainElement(HaveField("UID", uid)))
		release(ctx, set, 1)
		waitSettled(ctx, set)
		Expect(getPod(ctx, set, 1).UID).NotTo(Equal(uid))
		stay(ctx, before)
	})

	It("stay when a pod is deleted by hand or recreated", func(ctx context.Context) {
		set := create(ctx, claiming(namespace, remove, remove))
		before, uid := current(ctx), getPod(ctx, set, 0).UID
		Expect(api.Delete(ctx, getPod(ctx, set, 0), client.GracePeriodSeconds(0))).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			pods := &corev1.PodList{}
			g.Expect(api.List(ctx, pods, client.InNamespace(namespace))).To(Succeed())
			g.Expect(pods.Items).To(HaveLen(2))
			g.Expect(pods.Items[0].UID).NotTo(Equal(uid))
		}).Should(Succeed())
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Args = []string{"-ignore-term=1s"}
		})
		waitSettled(ctx, set)
		stay(ctx, before)
	})

	It("go with the set, if the policy says so", func(ctx context.Context) {
		set := create(ctx, claiming(namespace, remove, keep))
		Expect(current(ctx)).To(HaveLen(2))
		Expect(api.Delete(ctx, set)).To(Succeed())
		Eventually(ctx, current).Should(BeEmpty())
	})

	It("stay when the set is deleted, if the policy says so or the deletion does", func(ctx context.Context) {
		set := create(ctx, claiming(namespace, keep, remove))
		before := current(ctx)
		Expect(api.Delete(ctx, set)).To(Succeed())
		waitGone(ctx, set, 0)
		waitGone(ctx, set, 1)
		stay(ctx, before)

		set = create(ctx, claiming(namespace, remove, remove))
		Expect(api.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationOrphan))).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(set), set))
		}).Should(BeTrue())
		stay(ctx, before)
	})
})

var _ = Describe("A pod whose labels are taken off", func() {
	It("is released, and taken back with them", func(ctx context.Context) {
		namespace := newNamespace(ctx)
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		uid := getPod(ctx, set, 1).UID
		label := func(value string) {
			GinkgoHelper()
			pod := getPod(ctx, set, 1)
			before := pod.DeepCopy()
			pod.Labels["app"] = value
			Expect(api.Patch(ctx, pod, mergeFrom(before))).To(Succeed())
		}
		label("debug")
		Eventually(ctx, func(ctx context.Context) []metav1.OwnerReference { return getPod(ctx, set, 1).OwnerReferences }).Should(BeEmpty())
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonFailedCreate, "give it the labels of spec.selector")
		label("sample")
		Eventually(ctx, func(ctx context.Context) bool { return metav1.IsControlledBy(getPod(ctx, set, 1), set) }).Should(BeTrue())
		waitSettled(ctx, set)
		Expect(getPod(ctx, set, 1).UID).To(Equal(uid))
	})
})
