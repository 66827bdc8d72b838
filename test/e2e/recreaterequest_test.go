// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/test/short"
)

type recreateRequest = appsv1beta1.ContainerRecreateRequest

// requestFor asks for restarts of containers of a pod.
func requestFor(ctx context.Context, pod *corev1.Pod, strategy appsv1beta1.ContainerRecreateRequestStrategy, containers ...string) *recreateRequest {
	GinkgoHelper()
	request := &recreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, GenerateName: pod.Name + "-"}}
	request.Spec.PodName, request.Spec.Strategy = pod.Name, &strategy
	for _, name := range containers {
		request.Spec.Containers = append(request.Spec.Containers, appsv1beta1.ContainerRecreateRequestContainer{Name: name})
	}
	Expect(api.Create(ctx, request)).To(Succeed())
	return request
}

// waitCompleted waits until nothing more is done for a request.
func waitCompleted(ctx context.Context, request *recreateRequest) appsv1beta1.ContainerRecreateRequestStatus {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
		g.Expect(request.Status.Phase).To(Equal(appsv1beta1.ContainerRecreateRequestCompleted), request.Status.Message)
	}).WithTimeout(2 * time.Minute).Should(Succeed())
	return request.Status
}

// phasesOf returns the phases of the containers of a request.
func phasesOf(status appsv1beta1.ContainerRecreateRequestStatus) map[string]string {
	phases := map[string]string{}
	for _, state := range status.ContainerRecreateStates {
		phases[state.Name] = string(state.Phase)
	}
	return phases
}

// expectRest waits until nothing is left of requests on a pod that is the one from before, and that
// the pod serves.
func expectRest(ctx context.Context, before *corev1.Pod, main, side int32) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		pod := getPodNamed(ctx, before.Namespace, before.Name)
		g.Expect(pod.UID).To(Equal(before.UID))
		g.Expect(pod.Status.PodIP).To(Equal(before.Status.PodIP))
		g.Expect(pod.Labels).To(Equal(before.Labels))
		g.Expect(pod.Annotations).NotTo(HaveKey(appsv1beta1.RecreateRequestAnnotation))
		g.Expect(podutils.IsPodReady(pod)).To(BeTrue())
	}).Should(Succeed())
	expectRestarts(getPodNamed(ctx, before.Namespace, before.Name), main, side)
}

// alonePod makes a pod with two containers that has no owner.
func alonePod(ctx context.Context, namespace string) *corev1.Pod {
	GinkgoHelper()
	template := reading(namespace).Build().Spec.Template
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "alone", Labels: map[string]string{"app": "alone"}}, Spec: template.Spec}
	pod.Spec.ReadinessGates = nil
	Expect(api.Create(ctx, pod)).To(Succeed())
	Eventually(ctx, func(ctx context.Context) bool { return podutils.IsPodReady(getPodNamed(ctx, namespace, "alone")) }).Should(BeTrue())
	return getPodNamed(ctx, namespace, "alone")
}

var _ = Describe("A ContainerRecreateRequest", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("restarts containers of a pod without an owner, out of service if it says so", short.Spec, func(ctx context.Context) {
		pod := alonePod(ctx, namespace)
		request := requestFor(ctx, pod, appsv1beta1.ContainerRecreateRequestStrategy{
			OrderedRecreate: true, UnreadyGracePeriodSeconds: ptr.To[int64](2), MinStartedSeconds: 2,
		}, "side", "main")

		Expect(phasesOf(waitCompleted(ctx, request))).To(Equal(map[string]string{"main": "Succeeded", "side": "Succeeded"}))
		expectRest(ctx, pod, 1, 1)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
			g.Expect(request.Labels).To(Equal(map[string]string{
				appsv1beta1.ContainerRecreateRequestPodUIDKey: string(pod.UID), appsv1beta1.ContainerRecreateRequestNodeNameKey: pod.Spec.NodeName,
			}), "it is not active any more")
		}).Should(Succeed())
		var started []time.Time
		for _, status := range getPodNamed(ctx, namespace, pod.Name).Status.ContainerStatuses {
			Expect(status.ContainerID).NotTo(BeEmpty())
			started = append(started, status.State.Running.StartedAt.Time)
		}
		Expect(started[1]).To(BeTemporally("<", started[0]), "side goes before main")
		expectEvent(ctx, namespace, "Pod", appsv1beta1.ReasonUpdatingPodInPlace, "as ContainerRecreateRequest "+request.Name+" asks")

		By("a second one, of one container, without a word about service")
		request = requestFor(ctx, pod, appsv1beta1.ContainerRecreateRequestStrategy{}, "side")
		Expect(phasesOf(waitCompleted(ctx, request))).To(Equal(map[string]string{"side": "Succeeded"}))
		expectRest(ctx, pod, 1, 2)
	})

	It("waits for the budget of a StatefulSet, whose pods are drained for it", short.Spec, func(ctx context.Context) {
		set := create(ctx, reading(namespace))
		before := []*corev1.Pod{getPod(ctx, set, 0), getPod(ctx, set, 1)}
		var requests []*recreateRequest
		for _, pod := range before {
			requests = append(requests, requestFor(ctx, pod, appsv1beta1.ContainerRecreateRequestStrategy{MinStartedSeconds: 3}, "side"))
		}
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			ready := 0
			for i := range before {
				if podutils.IsPodReady(getPod(ctx, set, i)) {
					ready++
				}
			}
			g.Expect(ready).To(BeNumerically(">=", 1), "maxUnavailable is 1")
			for _, request := range requests {
				g.Expect(api.Get(ctx, client.ObjectKeyFromObject(request), request)).To(Succeed())
				g.Expect(request.Status.Phase).To(Equal(appsv1beta1.ContainerRecreateRequestCompleted))
			}
		}).WithTimeout(2 * time.Minute).WithPolling(100 * time.Millisecond).Should(Succeed())
		for _, pod := range before {
			expectRest(ctx, pod, 0, 1)
		}
		waitSettled(ctx, set)

		By("an update, and a request that goes with it")
		change(ctx, set, config("two"))
		request := requestFor(ctx, before[0], appsv1beta1.ContainerRecreateRequestStrategy{}, "main", "side")
		waitSettled(ctx, set)
		Expect(phasesOf(waitCompleted(ctx, request))).To(Equal(map[string]string{"main": "Succeeded", "side": "Succeeded"}))
		Expect(getPod(ctx, set, 0).UID).To(Equal(before[0].UID))
		Expect(ask(ctx, getPod(ctx, set, 0)).Env).To(HaveKeyWithValue("CONFIG", "two"))
		waitSettled(ctx, set)
		Expect(getPod(ctx, set, 1).Status.ContainerStatuses).To(ContainElement(And(HaveField("Name", "side"), HaveField("RestartCount", int32(1)))))
	})

	It("is refused with the reason where no kubelet can do what it asks, and restarts nothing", func(ctx context.Context) {
		pod := alonePod(ctx, namespace)
		for words, spec := range map[string]func(*recreateRequest){
			"terminationGracePeriodSeconds is 1, and the kubelet stops containers within the time of the pod: 2": func(r *recreateRequest) {
				r.Spec.Strategy.TerminationGracePeriodSeconds = ptr.To[int64](1)
			},
			"preStop is not that of container main": func(r *recreateRequest) {
				r.Spec.Containers[0].PreStop = &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}}
			},
			"container other of pod alone has not been started yet": func(r *recreateRequest) { r.Spec.Containers[0].Name = "other" },
			"pod has gone": func(r *recreateRequest) { r.Spec.PodName = "gone" },
		} {
			request := &recreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "refused-"}}
			request.Spec.PodName, request.Spec.Strategy = pod.Name, &appsv1beta1.ContainerRecreateRequestStrategy{}
			request.Spec.Containers = []appsv1beta1.ContainerRecreateRequestContainer{{Name: "main"}}
			spec(request)
			Expect(api.Create(ctx, request)).To(Succeed())
			status := waitCompleted(ctx, request)
			Expect(status.Message).To(ContainSubstring(words))
			Expect(status.ContainerRecreateStates).To(HaveEach(HaveField("Phase", appsv1beta1.ContainerRecreateRequestFailed)))
		}
		expectRest(ctx, pod, 0, 0)
	})

	It("is deleted when its time is over, which may be said later", func(ctx context.Context) {
		pod := alonePod(ctx, namespace)
		request := requestFor(ctx, pod, appsv1beta1.ContainerRecreateRequestStrategy{ForceRecreate: true}, "main")
		waitCompleted(ctx, request)
		expectRest(ctx, pod, 1, 0)
		before := client.MergeFrom(request.DeepCopy())
		request.Spec.TTLSecondsAfterFinished = ptr.To[int32](0)
		Expect(api.Patch(ctx, request, before)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool {
			return apierrors.IsNotFound(api.Get(ctx, client.ObjectKeyFromObject(request), request))
		}).Should(BeTrue())
	})

	It("ends at its deadline, and lets the pod serve, also when the manager is killed", Serial, func(ctx context.Context) {
		pod := alonePod(ctx, namespace)
		request := &recreateRequest{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "late"}}
		request.Spec.PodName, request.Spec.ActiveDeadlineSeconds = pod.Name, ptr.To[int64](8)
		request.Spec.Strategy = &appsv1beta1.ContainerRecreateRequestStrategy{UnreadyGracePeriodSeconds: ptr.To[int64](300)}
		request.Spec.Containers = []appsv1beta1.ContainerRecreateRequestContainer{{Name: "side"}}
		Expect(api.Create(ctx, request)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) bool { return podutils.IsPodReady(getPodNamed(ctx, namespace, pod.Name)) }).Should(BeFalse())
		killOperator(ctx)

		status := waitCompleted(ctx, request)
		Expect(status.Message).To(Equal("recreating has exceeded the activeDeadlineSeconds"))
		expectRest(ctx, pod, 0, 0)
		Expect(fmt.Sprint(phasesOf(status))).To(Equal("map[side:Failed]"))
	})
})
