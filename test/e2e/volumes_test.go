// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
)

// What every lab has, and the name of its CSI driver.
const (
	labDriver     = "csi.lab.insitu.dev"
	classStandard = "standard" // grows while it is in use
	classOffline  = "offline"  // grows only while no pod uses it
	classFixed    = "fixed"    // forbids growth
	classLimited  = "limited"  // has no volumes beyond 2Gi
	classSilver   = "silver"   // of attributes, as gold is
	classGold     = "gold"
)

// volumePatience is how long claims may take to change: a kubelet looks only
// once in a minute or so whether a filesystem is to be grown.
const volumePatience = 8 * time.Minute

// withVolume gives the pods of a set a claim "data" of 1Gi, mounted at a path,
// which follows its template.
func withVolume(b *builders.StatefulSetBuilder, class, path string) *builders.StatefulSetBuilder {
	return b.With(func(s *appsv1beta1.StatefulSet) {
		s.Spec.VolumeClaimUpdateStrategy = appsv1beta1.VolumeClaimUpdateStrategy{
			Type:          appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType,
			MaxConcurrent: ptr.To(intstr.FromString("100%")),
		}
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", class)}
		s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: path}}
	})
}

// nginxWithVolume is a set of three pods that have a claim at /data.
func nginxWithVolume(namespace, class string) *builders.StatefulSetBuilder {
	return withVolume(builders.StatefulSet(namespace, "sample", nginxAlpine), class, "/data")
}

func claimTemplate(name, class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:        corev1.VolumeResourceRequirements{Requests: storage("1Gi")},
		},
	}
}

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

// toSize makes the first claim of a set's template larger or smaller.
func toSize(size string) edit {
	return func(s *appsv1beta1.StatefulSet) {
		s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = storage(size)
	}
}

// toImage gives the pods of a set another image.
func toImage(image string) edit {
	return func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.Containers[0].Image = image }
}

// makeClass makes a class of the lab's driver that only one namespace uses, and
// is named after it. The parameters say how the driver behaves.
func makeClass(ctx context.Context, namespace string, parameters map[string]string) {
	GinkgoHelper()
	class := &storagev1.StorageClass{
		ObjectMeta:           metav1.ObjectMeta{Name: namespace},
		Provisioner:          labDriver,
		Parameters:           parameters,
		AllowVolumeExpansion: ptr.To(true),
	}
	Expect(api.Create(ctx, class)).To(Succeed())
	DeferCleanup(func(ctx context.Context) { Expect(client.IgnoreNotFound(api.Delete(ctx, class))).To(Succeed()) })
}

// newVolumeNamespace is newNamespace, and tells about claims, too.
func newVolumeNamespace(ctx context.Context) string {
	GinkgoHelper()
	namespace := newNamespace(ctx)
	DeferCleanup(func(ctx context.Context) {
		if !CurrentSpecReport().Failed() {
			return
		}
		for _, claim := range claimList(ctx, namespace) {
			AddReportEntry("Claim "+claim.Name, fmt.Sprintf("%v\n%+v\n%+v", claim.Annotations, claim.Spec, claim.Status))
		}
	})
	return namespace
}

func claimList(ctx context.Context, namespace string) []corev1.PersistentVolumeClaim {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	return list.Items
}

// capacities returns what the claims of a namespace have, by name.
func capacities(ctx context.Context, namespace string) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, claim := range claimList(ctx, namespace) {
		found[claim.Name] = claim.Status.Capacity.Storage().String()
	}
	return found
}

// of names the claims of the first pods of a set, with what is to be seen of
// each.
func of(pods int, what string) map[string]string {
	claims := map[string]string{}
	for i := range pods {
		claims[fmt.Sprintf("data-sample-%d", i)] = what
	}
	return claims
}

// waitCapacities waits until the claims of a namespace have their sizes.
func waitCapacities(ctx context.Context, namespace string, want map[string]string) {
	GinkgoHelper()
	Eventually(ctx, capacities).WithArguments(namespace).WithTimeout(volumePatience).WithPolling(time.Second).Should(Equal(want))
}

// waitVolumes waits until the pods of a set are at their template, and so are
// their claims.
func waitVolumes(ctx context.Context, set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
		isSettled(g, set)
		for _, claims := range set.Status.VolumeClaims {
			g.Expect(claims.CompatibleReplicas).To(Equal(*set.Spec.Replicas), "blockers: %+v", set.Status.Blockers)
			g.Expect(claims.CompatibleReadyReplicas).To(Equal(*set.Spec.Replicas), "blockers: %+v", set.Status.Blockers)
		}
		g.Expect(set.Status.VolumeClaims).To(HaveLen(len(set.Spec.VolumeClaimTemplates)))
		g.Expect(set.Status.Blockers).To(BeEmpty())
	}).WithTimeout(volumePatience).Should(Succeed())
}

// filesystem returns how many MiB the filesystem has that a process in a pod
// sees at a path, without what the filesystem needs itself.
func filesystem(ctx context.Context, namespace, pod, path string) int {
	GinkgoHelper()
	output, err := kubectl(ctx, "exec", "-n", namespace, pod, "--", "busybox", "stat", "-f", "-c", "%b %S", path)
	Expect(err).NotTo(HaveOccurred(), output)
	blocks, size, found := strings.Cut(strings.TrimSpace(output), " ")
	Expect(found).To(BeTrue(), output)
	count, err := strconv.Atoi(blocks)
	Expect(err).NotTo(HaveOccurred())
	bytes, err := strconv.Atoi(size)
	Expect(err).NotTo(HaveOccurred())
	return count * bytes >> 20
}

// expectFilesystems checks that the processes of all pods of a set see a
// filesystem of about that many GiB.
func expectFilesystems(ctx context.Context, set *appsv1beta1.StatefulSet, gib int) {
	GinkgoHelper()
	path := set.Spec.Template.Spec.Containers[0].VolumeMounts[0].MountPath
	for _, pod := range pods(ctx, set) {
		Expect(filesystem(ctx, set.Namespace, pod.Name, path)).To(And(BeNumerically(">", gib<<10*9/10), BeNumerically("<=", gib<<10)),
			"MiB that %s sees at %s", pod.Name, path)
	}
}
