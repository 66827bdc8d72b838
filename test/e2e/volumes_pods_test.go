// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/kubectl/pkg/util/podutils"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

// watchAway watches the pods of a set, all of which are ready, and returns what ends that
// and says how many of them were away at a time, at most: deleted, and not ready again since. One
// whose probe fails for a moment is not.
func watchAway(ctx context.Context, set *appsv1beta1.StatefulSet) (most func() int) {
	GinkgoHelper()
	selector := "app=" + set.Name
	list, err := kube.CoreV1().Pods(set.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	Expect(err).NotTo(HaveOccurred())
	// The watch outlives this node of the spec's context.
	events, err := kube.CoreV1().Pods(set.Namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{
		LabelSelector: selector, ResourceVersion: list.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	away, highest, done := sets.New[string](), 0, make(chan struct{})
	go func() {
		defer close(done)
		for event := range events.ResultChan() {
			pod, isPod := event.Object.(*corev1.Pod)
			if !isPod {
				continue
			}
			switch {
			case event.Type == watch.Deleted || pod.DeletionTimestamp != nil:
				away.Insert(pod.Name)
			case podutils.IsPodReady(pod):
				away.Delete(pod.Name)
			}
			highest = max(highest, away.Len())
		}
	}()
	most = func() int {
		events.Stop()
		<-done
		return highest
	}
	DeferCleanup(func() { most() })
	return most
}

var _ = Describe("Volumes that need their pods to go", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newVolumeNamespace(ctx) })

	It("for they grow only while no pod uses them, take the pods that they must, one at a time", func(ctx context.Context) {
		// This one has the new size from the beginning.
		large := claimTemplate("data-sample-1", classOffline)
		large.Namespace, large.Spec.Resources.Requests = namespace, storage("2Gi")
		large.Labels = map[string]string{"app": "sample"}
		Expect(api.Create(ctx, &large)).To(Succeed())
		set := create(ctx, redis.set(namespace, classOffline))
		before := pods(ctx, set)
		writers := startWriters(ctx, redis, set)
		most := watchAway(ctx, set)

		change(ctx, set, toSize("2Gi"))
		waitVolumes(ctx, set)
		Expect(most()).To(Equal(1))
		Expect(capacities(ctx, namespace)).To(Equal(of(3, "2Gi")))
		expectFilesystems(ctx, set, 2)
		after := pods(ctx, set)
		Expect(after).To(HaveLen(3))
		Expect(after[0].UID).NotTo(Equal(before[0].UID))
		Expect(after[1].UID).To(Equal(before[1].UID))
		Expect(after[2].UID).NotTo(Equal(before[2].UID))
		Expect(set.Status.Recreated).To(BeEquivalentTo(2))

		By("rolling back and forth, which leaves the volumes as they are")
		change(ctx, set, toSize("1Gi"))
		waitVolumes(ctx, set)
		change(ctx, set, toSize("2Gi"))
		waitVolumes(ctx, set)
		Expect(uids(pods(ctx, set))).To(Equal(uids(after)))
		expectInPlace(after, pods(ctx, set), 0)
		writers.expectAllStored(ctx)
	})

	It("for their file system grows only while no pod has it, take the pods, one at a time", func(ctx context.Context) {
		makeClass(ctx, namespace, map[string]string{"nodeExpand": "offline"})
		set := create(ctx, nginxWithVolume(namespace, namespace))
		before := pods(ctx, set)
		most := watchAway(ctx, set)
		change(ctx, set, toSize("2Gi"))
		waitVolumes(ctx, set)
		Expect(most()).To(Equal(1))
		Expect(capacities(ctx, namespace)).To(Equal(of(3, "2Gi")))
		expectFilesystems(ctx, set, 2)
		for i, p := range pods(ctx, set) {
			Expect(p.UID).NotTo(Equal(before[i].UID))
		}
		Expect(set.Status.Recreated).To(BeEquivalentTo(3))
	})

	It("for a template was added or removed, take the pods, one at a time, and no claim", func(ctx context.Context) {
		set := create(ctx, nginxWithVolume(namespace, classStandard))
		before, data := pods(ctx, set), claims(ctx, namespace)
		most := watchAway(ctx, set)

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = append(s.Spec.VolumeClaimTemplates, claimTemplate("logs", classStandard))
			container := &s.Spec.Template.Spec.Containers[0]
			container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: "logs", MountPath: "/logs"})
		})
		waitVolumes(ctx, set)
		for i, p := range pods(ctx, set) {
			Expect(p.UID).NotTo(Equal(before[i].UID))
			Expect(filesystem(ctx, namespace, p.Name, "/logs")).To(BeNumerically(">", 900))
		}
		all := claims(ctx, namespace)
		Expect(all).To(HaveLen(6))
		for name, uid := range data {
			Expect(all).To(HaveKeyWithValue(name, uid))
		}

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.VolumeClaimTemplates = s.Spec.VolumeClaimTemplates[:1]
			container := &s.Spec.Template.Spec.Containers[0]
			container.VolumeMounts = container.VolumeMounts[:1]
		})
		waitVolumes(ctx, set)
		Expect(most()).To(Equal(1))
		for i := range 3 {
			Expect(getPod(ctx, set, i).Spec.Volumes).NotTo(ContainElement(HaveField("Name", "logs")))
		}
		Expect(claims(ctx, namespace)).To(Equal(all))
	})
})

var _ = Describe("Volumes that grow in use", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newVolumeNamespace(ctx) })

	It("keep the pods of a CloneSet", func(ctx context.Context) {
		c := newClones(ctx, builders.CloneSet(namespace, "sample", nginxAlpine).With(func(s *appsv1beta1.CloneSet) {
			s.Spec.VolumeClaimUpdateStrategy.Type = appsv1beta1.OnPodRollingUpdateVolumeClaimUpdateStrategyType
			s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claimTemplate("data", classStandard)}
			s.Spec.Template.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		}))
		before, bound := c.pods(ctx), claims(ctx, namespace)
		Expect(bound).To(HaveLen(3))
		c.change(ctx, func(s *appsv1beta1.CloneSet) {
			s.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests = storage("2Gi")
			s.Spec.Template.Spec.Containers[0].Image = nginxLatest
		})
		want := map[string]string{}
		for name := range bound {
			want[name] = "2Gi"
		}
		waitCapacities(ctx, namespace, want)
		c.waitSettled(ctx)
		expectInPlace(before, c.pods(ctx), 1)
		for _, p := range c.pods(ctx) {
			Expect(filesystem(ctx, namespace, p.Name, "/data")).To(BeNumerically(">", 1800))
		}
		Expect(claims(ctx, namespace)).To(Equal(bound))
	})

	It("follow the partition, and new pods have the new size", short.Spec, func(ctx context.Context) {
		set := create(ctx, nginxWithVolume(namespace, classStandard).Partition(2))
		before := pods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			toSize("2Gi")(s)
			toImage(nginxLatest)(s)
		})
		want := of(3, "1Gi")
		want["data-sample-2"] = "2Gi"
		waitCapacities(ctx, namespace, want)
		Consistently(ctx, capacities).WithArguments(namespace).WithTimeout(5 * time.Second).Should(Equal(want))

		scale(ctx, set, 4)
		want["data-sample-3"] = "2Gi"
		waitCapacities(ctx, namespace, want)
		Eventually(ctx, func(ctx context.Context) []string { return images(pods(ctx, set)) }).
			Should(Equal([]string{nginxAlpine, nginxAlpine, nginxLatest, nginxLatest}))
		expectInPlace(before[:2], pods(ctx, set)[:2], 0)

		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Partition = nil })
		waitVolumes(ctx, set)
		Expect(capacities(ctx, namespace)).To(Equal(of(4, "2Gi")))
		expectInPlace(before, pods(ctx, set)[:3], 1)
	})
})
