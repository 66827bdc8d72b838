// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

// onNodesOfTheirOwn keeps pods of a template off each other's nodes.
func onNodesOfTheirOwn(template *corev1.PodTemplateSpec) {
	template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: template.Labels},
		}},
	}}
}

// unpulled leaves it to the kubelets to pull images, after pods were taken out of service.
func unpulled() *appsv1beta1.InPlaceUpdateStrategy {
	return &appsv1beta1.InPlaceUpdateStrategy{ImagePull: &appsv1beta1.ImagePullPolicy{Policy: appsv1beta1.NoImagePull}}
}

// unpulledSet is an edit of a StatefulSet.
func unpulledSet(s *appsv1beta1.StatefulSet) {
	s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = unpulled()
}

var _ = Describe("An image that is pulled before", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("takes no pod out of service while no node can pull it", short.Spec, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).With(func(s *appsv1beta1.StatefulSet) {
			// With Always, the kubelet asks the registry also for an image that it has.
			s.Spec.Template.Spec.Containers[0].ImagePullPolicy = corev1.PullAlways
		}))
		before := pods(ctx, set)

		By("a tag that does not exist")
		setImage(ctx, set, nginxMissing)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			stalled := meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)
			g.Expect(stalled).To(And(HaveField("Status", BeEquivalentTo("True")), HaveField("Reason", inplace.ReasonImageNotPullable)))
			g.Expect(stalled.Message).To(ContainSubstring("cannot pull " + nginxMissing)) // one node, or both
		})
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			found := pods(ctx, set)
			g.Expect(found).To(HaveLen(len(before)))
			for i := range found {
				g.Expect(found[i].UID).To(Equal(before[i].UID))
				g.Expect(found[i].Ready).To(BeTrue(), found[i].Name)
				g.Expect(found[i].Image).To(Equal(nginxAlpine))
			}
		}).WithTimeout(5 * time.Second).Should(Succeed())
		expectEvent(ctx, namespace, "StatefulSet", inplace.ReasonImageNotPullable, "cannot pull "+nginxMissing)

		By("the tag that was meant")
		setImage(ctx, set, nginxLatest)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			left := &corev1.PodList{}
			g.Expect(api.List(ctx, left, client.InNamespace(namespace), client.HasLabels{appsv1beta1.PullerLabel})).To(Succeed())
			g.Expect(left.Items).To(BeEmpty(), "nothing is left behind")
		}).Should(Succeed())
		ran := false
		for _, event := range eventsOf(ctx, namespace) {
			if strings.HasPrefix(event.Regarding.Name, "sample-pull-") {
				ran = ran || event.Reason == "Started"
				Expect(event.Reason).NotTo(Equal("FailedMount"), event.Note)
			}
		}
		Expect(ran).To(BeFalse(), "nothing of the image runs")
	})

	// No other spec can pull meanwhile.
	It("is all that a pod needs of the registry", Serial, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
			onNodesOfTheirOwn(&s.Spec.Template)
			// The image is on the second node when the pod of the first one is updated, and this is not over.
			s.Spec.UpdateStrategy.RollingUpdate.MinReadySeconds = ptr.To[int32](15)
		}))
		before := pods(ctx, set)
		image := "insitu-dev/sleeper:" + namespace // that no node has, also at a second attempt
		lab(ctx, "load", image, "--go", "../lab/images/sleeper", "--padding", "1Mi")
		setImage(ctx, set, image)
		Eventually(ctx, func(ctx context.Context) map[string]string {
			pulled := map[string]string{}
			for _, event := range eventsOf(ctx, namespace) {
				if event.Reason == "Pulled" && strings.HasPrefix(event.Regarding.Name, "sample-pull-") {
					pulled[event.Regarding.Name] = event.Note
				}
			}
			return pulled
		}).Should(HaveLen(2))
		Expect(getPod(ctx, set, 0).Spec.Containers[0].Image).To(Equal(sleeperV1), "not its turn")

		DeferCleanup(func(ctx context.Context) { lab(ctx, "bandwidth", "full") })
		lab(ctx, "bandwidth", "off")
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
		Expect(images(pods(ctx, set))).To(HaveEach(image))
	})

	It("deletes no pod while no node can pull the image of the next one, which brings its own secret", func(ctx context.Context) {
		image := "private/sleeper:" + namespace
		lab(ctx, "load", image, "--go", "../lab/images/sleeper", "--padding", "1Mi")
		for name, password := range map[string]string{"wrong": "wrong", "right": "open-sesame"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretTypeDockerConfigJson}
			secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: passwordOf(password)}
			Expect(api.Create(ctx, secret)).To(Succeed())
		}
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).Policy(appsv1beta1.RecreatePodUpdateStrategyType))
		before := pods(ctx, set)

		By("a tag that does not exist")
		setImage(ctx, set, nginxMissing)
		expectNotPullable(ctx, set, before, sleeperV1)

		By("an image that takes a secret, and a wrong one")
		change(ctx, set, func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.Containers[0].Image = image
			set.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "wrong"}}
		})
		expectNotPullable(ctx, set, before, sleeperV1)

		By("the right one")
		change(ctx, set, func(set *appsv1beta1.StatefulSet) {
			set.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "right"}}
		})
		waitSettled(ctx, set)
		Expect(images(pods(ctx, set))).To(HaveEach(image))
		for i, pod := range pods(ctx, set) {
			Expect(pod.UID).NotTo(Equal(before[i].UID), pod.Name)
		}
	})

	It("waits in service while a secret is wrong, goes back, and goes on when the secret is right", func(ctx context.Context) {
		image := "private/sleeper:" + namespace
		lab(ctx, "load", image, "--go", "../lab/images/sleeper", "--padding", "1Mi")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "registry"}, Type: corev1.SecretTypeDockerConfigJson}
		secret.Data = map[string][]byte{corev1.DockerConfigJsonKey: passwordOf("wrong")}
		Expect(api.Create(ctx, secret)).To(Succeed())
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: secret.Name}}
		}))
		before := pods(ctx, set)

		setImage(ctx, set, image)
		expectNotPullable(ctx, set, before, sleeperV1)

		By("back")
		setImage(ctx, set, sleeperV1)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 0)

		By("forth, with the right secret after a while")
		setImage(ctx, set, image)
		expectNotPullable(ctx, set, before, sleeperV1)
		secret.Data[corev1.DockerConfigJsonKey] = passwordOf("open-sesame")
		Expect(api.Update(ctx, secret)).To(Succeed())
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
	})

	It("waits in service while the registry is down, and goes on when it is back", Serial, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2))
		before := pods(ctx, set)
		image := "insitu-dev/sleeper:" + namespace
		lab(ctx, "load", image, "--go", "../lab/images/sleeper", "--padding", "1Mi")

		DeferCleanup(func(ctx context.Context) { lab(ctx, "bandwidth", "full") })
		lab(ctx, "bandwidth", "off")
		setImage(ctx, set, image)
		expectNotPullable(ctx, set, before, sleeperV1)

		lab(ctx, "bandwidth", "full")
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
	})
})

// passwordOf is a Docker configuration with a password for docker.io, whose mirror the lab's registry is.
func passwordOf(password string) []byte {
	return fmt.Appendf(nil, `{"auths": {"https://index.docker.io/v1/": {"username": "reader", "password": %q}}}`, password)
}

// expectNotPullable waits until a set says that its image cannot be pulled, and expects all pods to
// serve the one that they have for a while.
func expectNotPullable(ctx context.Context, set *appsv1beta1.StatefulSet, before []observe.Pod, image string) {
	GinkgoHelper()
	eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
		g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Reason", inplace.ReasonImageNotPullable)))
	})
	Consistently(ctx, func(g Gomega, ctx context.Context) {
		found := pods(ctx, set)
		g.Expect(observe.Differences(before, found, 0)).To(BeEmpty())
		for _, pod := range found {
			g.Expect(pod.Ready).To(BeTrue(), pod.Name)
			g.Expect(pod.Image).To(Equal(image))
		}
	}).WithTimeout(5 * time.Second).Should(Succeed())
}
