// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

const (
	sleeperV3 = "insitu-dev/sleeper:v3"
	// sleeperV2Again has the digest of sleeperV2.
	sleeperV2Again = "insitu-dev/sleeper:same-as-v2"
)

// The init containers of sidecarSet, in their order.
const (
	setupContainer = iota
	proxyContainer
)

// sidecarSet starts a set of two pods with an init container that runs once, a
// native sidecar, and a container. The sidecar is ready two seconds after it was
// started.
func sidecarSet(namespace string) *builders.StatefulSetBuilder {
	return builders.StatefulSet(namespace, "sample", nginxAlpine).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
		s.Spec.Template.Spec.InitContainers = []corev1.Container{
			{Name: "setup", Image: sleeperV1, Env: []corev1.EnvVar{{Name: "SLEEPER_WAIT", Value: "1s"}}},
			{
				Name: "proxy", Image: sleeperV1, RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
				Env: []corev1.EnvVar{{Name: "SLEEPER_READY_AFTER", Value: "2s"}},
				ReadinessProbe: &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
					HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: intstr.FromInt32(8080)},
				}},
			},
		}
	})
}

func keepReady(names ...string) func(*appsv1beta1.StatefulSet) {
	return func(s *appsv1beta1.StatefulSet) {
		s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{
			KeepReady: names, GracePeriodSeconds: 600,
		}
	}
}

func setInitImage(ctx context.Context, set *appsv1beta1.StatefulSet, container int, image string) {
	GinkgoHelper()
	change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.Template.Spec.InitContainers[container].Image = image })
}

// getPods returns the pods of a set, the lowest ordinal first.
func getPods(ctx context.Context, set *appsv1beta1.StatefulSet) []*corev1.Pod {
	GinkgoHelper()
	found := make([]*corev1.Pod, 0, *set.Spec.Replicas)
	for ordinal := range int(*set.Spec.Replicas) {
		found = append(found, getPod(ctx, set, ordinal))
	}
	return found
}

// expectSidecar checks that a pod is the one from before, that nothing of it but
// the proxy was restarted, and that the proxy runs an image.
func expectSidecar(before, after *corev1.Pod, image string, restarts int32) {
	GinkgoHelper()
	Expect(after.UID).To(Equal(before.UID))
	Expect(after.Status.PodIP).To(Equal(before.Status.PodIP))
	Expect(after.Spec.NodeName).To(Equal(before.Spec.NodeName))
	Expect(after.Status.ContainerStatuses).To(Equal(before.Status.ContainerStatuses), "the container goes on running")
	Expect(after.Status.InitContainerStatuses[setupContainer]).To(Equal(before.Status.InitContainerStatuses[setupContainer]))
	Expect(after.Spec.InitContainers[proxyContainer].Image).To(Equal(image))
	proxy := after.Status.InitContainerStatuses[proxyContainer]
	Expect(proxy.RestartCount).To(Equal(restarts))
	Expect(proxy.Ready).To(BeTrue())
}

var _ = Describe("A native sidecar", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("changes its image, and goes back, while the containers go on running", short.Spec, func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace))
		before := getPods(ctx, set)

		// The last change gives the proxy another tag of the same digest.
		for i, image := range []string{sleeperV3, sleeperV1, sleeperV2, sleeperV2Again} {
			setInitImage(ctx, set, proxyContainer, image)
			waitSettled(ctx, set)
			for ordinal, pod := range getPods(ctx, set) {
				expectSidecar(before[ordinal], pod, image, int32(i+1))
			}
		}
		Expect(set.Status).To(And(HaveField("InPlaceUpdated", BeEquivalentTo(2)), HaveField("Recreated", BeZero())))
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonUpdatingPodInPlace, "image of proxy: insitu-dev/sleeper:v1 to insitu-dev/sleeper:v3")
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonSuccessfulUpdatePodInPlace, "back in service")
	})

	It("changes together with a container", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace))
		before := getPods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.InitContainers[proxyContainer].Image = sleeperV2
			s.Spec.Template.Spec.Containers[0].Image = nginxLatest
		})
		waitSettled(ctx, set)
		for ordinal, pod := range getPods(ctx, set) {
			Expect(pod.UID).To(Equal(before[ordinal].UID))
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeEquivalentTo(1))
			Expect(pod.Status.InitContainerStatuses[proxyContainer].RestartCount).To(BeEquivalentTo(1))
			Expect(pod.Status.InitContainerStatuses[setupContainer].RestartCount).To(BeZero())
		}
	})

	It("comes back from an image that keeps crashing", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace))
		before := getPods(ctx, set)
		setInitImage(ctx, set, proxyContainer, sleeperCrash)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(And(HaveField("Pod", "sample-1"), HaveField("Reason", "CrashLoopBackOff"))))
		})
		setInitImage(ctx, set, proxyContainer, sleeperV1)
		waitSettled(ctx, set)
		for ordinal, pod := range getPods(ctx, set) {
			restarts := pod.Status.InitContainerStatuses[proxyContainer].RestartCount
			expectSidecar(before[ordinal], pod, sleeperV1, restarts)
		}
	})

	// The kubelet does not show in the status that it cannot pull the image.
	It("comes back from an image that does not exist", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace).With(unpulledSet))
		before := getPods(ctx, set)
		setInitImage(ctx, set, proxyContainer, nginxMissing)
		expectEvent(ctx, namespace, "Pod", "Failed", "Failed to pull image")
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(And(
				HaveField("Pod", "sample-1"), HaveField("Message", ContainSubstring("the pod's events say why")))))
		})
		setInitImage(ctx, set, proxyContainer, sleeperV1)
		waitSettled(ctx, set)
		for ordinal, pod := range getPods(ctx, set) {
			restarts := pod.Status.InitContainerStatuses[proxyContainer].RestartCount
			expectSidecar(before[ordinal], pod, sleeperV1, restarts)
		}
	})

	It("is not what an init container is that runs once: its pods are recreated", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace))
		before := getPods(ctx, set)
		setInitImage(ctx, set, setupContainer, sleeperV2)
		waitSettled(ctx, set)
		for ordinal, pod := range getPods(ctx, set) {
			Expect(pod.UID).NotTo(Equal(before[ordinal].UID))
			Expect(pod.Status.InitContainerStatuses[setupContainer].State.Terminated).NotTo(BeNil())
		}
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonRecreating, "spec.initContainers[setup].image was changed")

		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = appsv1beta1.InPlaceOnlyPodUpdateStrategyType
			s.Spec.Template.Spec.InitContainers[setupContainer].Image = sleeperV3
		})
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(And(
				HaveField("Reason", inplace.ReasonRunsOnce), HaveField("Message", ContainSubstring("runs once, before the containers")))))
		})
	})
})

var _ = Describe("keepReady", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	// The grace period of ten minutes shows that nothing waits for it.
	It("changes a container that it names while the pod stays in service", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace).With(keepReady("proxy")))
		before := getPods(ctx, set)
		gates := watchGates(ctx, set)

		setInitImage(ctx, set, proxyContainer, sleeperV2)
		waitSettled(ctx, set)

		for ordinal, pod := range getPods(ctx, set) {
			expectSidecar(before[ordinal], pod, sleeperV2, 1)
			Expect(gateOf(pod)).To(Equal(gateOf(before[ordinal])))
		}
		Expect(gates()).To(And(Not(BeEmpty()), HaveEach(corev1.ConditionTrue)))
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonUpdatingPodInPlace, "(not drained: keepReady names proxy)")
	})

	It("does not keep a container of another name in service", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace).With(keepReady("proxy")))
		gates := watchGates(ctx, set)
		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Reason", inplace.ReasonGracePeriod)))
		})
		Expect(gates()).To(ContainElement(corev1.ConditionFalse))

		// Drained for what is not wanted any more: only the proxy changes.
		change(ctx, set, func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.Containers[0].Image = nginxAlpine
			s.Spec.Template.Spec.InitContainers[proxyContainer].Image = sleeperV3
		})
		waitSettled(ctx, set)
		for _, pod := range getPods(ctx, set) {
			Expect(pod.Status.ContainerStatuses[0].RestartCount).To(BeZero())
			Expect(pod.Status.InitContainerStatuses[proxyContainer].RestartCount).To(BeEquivalentTo(1))
		}
	})

	It("leaves a sidecar that keeps crashing", func(ctx context.Context) {
		set := create(ctx, sidecarSet(namespace).With(keepReady("proxy")))
		before := getPods(ctx, set)
		gates := watchGates(ctx, set)
		setInitImage(ctx, set, proxyContainer, sleeperCrash)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Reason", "CrashLoopBackOff")))
		})
		setInitImage(ctx, set, proxyContainer, sleeperV2)
		waitSettled(ctx, set)
		for ordinal, pod := range getPods(ctx, set) {
			restarts := pod.Status.InitContainerStatuses[proxyContainer].RestartCount
			expectSidecar(before[ordinal], pod, sleeperV2, restarts)
		}
		Expect(gates()).To(HaveEach(corev1.ConditionTrue))
	})
})

func gateOf(pod *corev1.Pod) corev1.PodCondition {
	for _, c := range pod.Status.Conditions {
		if c.Type == appsv1beta1.InPlaceUpdateReady {
			return c
		}
	}
	return corev1.PodCondition{}
}

// watchGates watches the readiness gates of the pods of a set from now on. The
// function that it returns ends that, and returns every state that was seen.
func watchGates(ctx context.Context, set *appsv1beta1.StatefulSet) (seen func() []corev1.ConditionStatus) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(set.Namespace))).To(Succeed())
	// The watch outlives this node of the spec's context.
	pods, err := kube.CoreV1().Pods(set.Namespace).Watch(context.WithoutCancel(ctx), metav1.ListOptions{
		LabelSelector: "app=" + set.Name, ResourceVersion: list.ResourceVersion,
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(pods.Stop)
	var all []corev1.ConditionStatus
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range pods.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && event.Type == watch.Modified {
				all = append(all, gateOf(pod).Status)
			}
		}
	}()
	return func() []corev1.ConditionStatus {
		pods.Stop()
		<-done
		return all
	}
}
