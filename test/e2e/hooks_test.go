// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

// blocker is the finalizer by which the hooks of these specs hold pods.
const blocker = "example.io/unready-blocker"

func blockerHook(mark bool) *appsv1beta1.LifecycleHook {
	return &appsv1beta1.LifecycleHook{FinalizersHandler: []string{blocker}, MarkPodNotReady: mark}
}

// hooked is a set of two pods with hooks, and the finalizer on its pods.
func hooked(namespace string, lifecycle appsv1beta1.Lifecycle) *builders.StatefulSetBuilder {
	return builders.StatefulSet(namespace, "sample", sleeperV1).Replicas(2).With(func(s *appsv1beta1.StatefulSet) {
		s.Spec.Template.Finalizers = []string{blocker}
		s.Spec.Template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](2)
		s.Spec.Lifecycle = &lifecycle
		DeferCleanup(func(ctx context.Context) { releaseAll(ctx, namespace) })
	})
}

// releaseAll takes the finalizer off all pods, so that their namespace can go.
func releaseAll(ctx context.Context, namespace string) {
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
	for i := range list.Items {
		Expect(client.IgnoreNotFound(setBlocker(ctx, &list.Items[i], false))).To(Succeed())
	}
}

// setBlocker puts the finalizer on a pod or takes it off.
func setBlocker(ctx context.Context, pod *corev1.Pod, on bool) error {
	before := pod.DeepCopy()
	pod.Finalizers = slices.DeleteFunc(pod.Finalizers, func(f string) bool { return f == blocker })
	if on {
		pod.Finalizers = append(pod.Finalizers, blocker)
	}
	return api.Patch(ctx, pod, client.MergeFrom(before))
}

func release(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal int) {
	GinkgoHelper()
	Expect(setBlocker(ctx, getPod(ctx, set, ordinal), false)).To(Succeed())
}

func holdAgain(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal int) {
	GinkgoHelper()
	Expect(setBlocker(ctx, getPod(ctx, set, ordinal), true)).To(Succeed())
}

func stateOf(pod *corev1.Pod) appsv1beta1.LifecycleStateType {
	return appsv1beta1.LifecycleStateType(pod.Labels[appsv1beta1.LifecycleStateKey])
}

// waitState waits until a pod is in a lifecycle state, and returns it.
func waitState(ctx context.Context, set *appsv1beta1.StatefulSet, ordinal int, state appsv1beta1.LifecycleStateType) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Eventually(ctx, func(g Gomega) {
		pod = getPod(ctx, set, ordinal)
		g.Expect(stateOf(pod)).To(Equal(state))
	}).Should(Succeed())
	return pod
}

// conducts is a hook controller: it releases pods that are held, and puts the
// finalizer back on those that were updated. It does so until the spec ends.
func conducts(ctx context.Context, namespace, app string) {
	stop := make(chan struct{})
	done := make(chan struct{})
	DeferCleanup(func() { close(stop); <-done })
	go func() {
		defer GinkgoRecover()
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
			list := &corev1.PodList{}
			if api.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app": app}) != nil {
				continue
			}
			for i := range list.Items {
				pod := &list.Items[i]
				switch stateOf(pod) {
				case appsv1beta1.LifecycleStatePreparingUpdate, appsv1beta1.LifecycleStatePreparingDelete:
					_ = setBlocker(ctx, pod, false) // tried again
				case appsv1beta1.LifecycleStateUpdated, appsv1beta1.LifecycleStatePreparingNormal:
					_ = setBlocker(ctx, pod, true)
				case appsv1beta1.LifecycleStateNormal, appsv1beta1.LifecycleStateUpdating:
				}
			}
		}
	}()
}

func expectHeld(ctx context.Context, set *appsv1beta1.StatefulSet, pod, reason string) {
	GinkgoHelper()
	eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
		g.Expect(set.Status.Blockers).To(ContainElement(And(
			HaveField("Pod", pod), HaveField("Step", string(inplace.HookHeld)), HaveField("Reason", reason),
			HaveField("Message", ContainSubstring(blocker)))))
	})
}

var _ = Describe("Lifecycle hooks", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("hold a pod before its update, say what comes, and keep it from counting until they are back", short.Spec, func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{InPlaceUpdate: blockerHook(true)}))
		before := pods(ctx, set)
		setImage(ctx, set, sleeperV2)

		held := waitState(ctx, set, 1, appsv1beta1.LifecycleStatePreparingUpdate)
		expectHeld(ctx, set, "sample-1", inplace.ReasonInPlaceUpdateHook)
		Expect(held.Annotations[appsv1beta1.PendingUpdateKey]).To(MatchJSON(`{"revision":"` + set.Status.UpdateRevision +
			`","containers":[{"name":"main","image":"` + sleeperV1 + `","newImage":"` + sleeperV2 + `"}]}`))
		Eventually(ctx, func() bool { return podutils.IsPodReady(getPod(ctx, set, 1)) }).Should(BeFalse(), "markPodNotReady")
		Expect(held.Spec.Containers[0].Image).To(Equal(sleeperV1))
		expectEvent(ctx, namespace, "StatefulSet", string(appsv1beta1.LifecycleStatePreparingUpdate), "pod sample-1")

		release(ctx, set, 1)
		updated := waitState(ctx, set, 1, appsv1beta1.LifecycleStateUpdated)
		Expect(updated.Annotations).NotTo(HaveKey(appsv1beta1.PendingUpdateKey))
		expectHeld(ctx, set, "sample-1", inplace.ReasonUpdatedHook)
		Eventually(ctx, func() bool { return podutils.IsPodReady(getPod(ctx, set, 1)) }).Should(BeTrue())
		Expect(stateOf(getPod(ctx, set, 0))).To(Equal(appsv1beta1.LifecycleStateNormal), "one at a time")

		holdAgain(ctx, set, 1)
		waitState(ctx, set, 1, appsv1beta1.LifecycleStateNormal)
		waitState(ctx, set, 0, appsv1beta1.LifecycleStatePreparingUpdate)
		release(ctx, set, 0)
		waitState(ctx, set, 0, appsv1beta1.LifecycleStateUpdated)
		holdAgain(ctx, set, 0)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 1)
	})

	It("give a pod back untouched when the update is taken back", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{InPlaceUpdate: blockerHook(true)}))
		before := pods(ctx, set)
		setImage(ctx, set, sleeperV2)
		waitState(ctx, set, 1, appsv1beta1.LifecycleStatePreparingUpdate)

		setImage(ctx, set, sleeperV1)
		pod := waitState(ctx, set, 1, appsv1beta1.LifecycleStateNormal)
		Expect(pod.Annotations).NotTo(HaveKey(appsv1beta1.PendingUpdateKey))
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 0)
	})

	It("let three revisions in flight end at the last, one pod at a time", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{InPlaceUpdate: blockerHook(false)}).Replicas(3).MaxUnavailable(1))
		before := pods(ctx, set)
		setImage(ctx, set, sleeperV2)
		waitState(ctx, set, 2, appsv1beta1.LifecycleStatePreparingUpdate)
		release(ctx, set, 2)
		waitState(ctx, set, 2, appsv1beta1.LifecycleStateUpdated)
		setImage(ctx, set, "insitu-dev/sleeper:v3")
		Eventually(ctx, func(g Gomega) {
			pod := getPod(ctx, set, 2)
			g.Expect(stateOf(pod)).To(Equal(appsv1beta1.LifecycleStatePreparingUpdate), "asked again")
			g.Expect(pod.Finalizers).To(ContainElement(blocker))
		}).Should(Succeed())
		change(ctx, set, edits(image("insitu-dev/sleeper:v3"), label))
		Eventually(ctx, func() string { return getPod(ctx, set, 2).Annotations[appsv1beta1.PendingUpdateKey] }).Should(ContainSubstring("tier"))

		conducts(ctx, namespace, set.Name)
		waitSettled(ctx, set)
		after := pods(ctx, set)
		for i := range after {
			Expect(after[i].UID).To(Equal(before[i].UID))
			Expect(after[i].Image).To(Equal("insitu-dev/sleeper:v3"))
		}
		Expect([]int32{after[0].Restarts, after[1].Restarts, after[2].Restarts}).To(Equal([]int32{1, 1, 2}))
	})

	It("hold a pod before its deletion by a scale-down, and give it back to a scale-up", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{PreDelete: blockerHook(false)}))
		before := pods(ctx, set)
		change(ctx, set, scaledTo(1))
		waitState(ctx, set, 1, appsv1beta1.LifecycleStatePreparingDelete)
		expectHeld(ctx, set, "sample-1", inplace.ReasonPreDeleteHook)

		change(ctx, set, scaledTo(2))
		waitState(ctx, set, 1, appsv1beta1.LifecycleStateNormal)
		waitSettled(ctx, set)
		expectInPlace(before, pods(ctx, set), 0)

		change(ctx, set, scaledTo(1))
		waitState(ctx, set, 1, appsv1beta1.LifecycleStatePreparingDelete)
		release(ctx, set, 1)
		Eventually(ctx, func() int { return len(pods(ctx, set)) }).Should(Equal(1))
	})

	It("hold a pod before it is recreated", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{PreDelete: blockerHook(true)}))
		before := pods(ctx, set)
		change(ctx, set, environment)
		held := waitState(ctx, set, 1, appsv1beta1.LifecycleStatePreparingDelete)
		Expect(held.DeletionTimestamp).To(BeNil())
		Eventually(ctx, func() bool { return podutils.IsPodReady(getPod(ctx, set, 1)) }).Should(BeFalse(), "markPodNotReady")

		conducts(ctx, namespace, set.Name)
		waitSettled(ctx, set)
		for i, pod := range pods(ctx, set) {
			Expect(pod.UID).NotTo(Equal(before[i].UID))
		}
	})

	It("keep new pods from counting until they have what preNormal asks for", short.Spec, func(ctx context.Context) {
		set := hooked(namespace, appsv1beta1.Lifecycle{PreNormal: blockerHook(false)}).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Finalizers = nil
		}).Build()
		Expect(api.Create(ctx, set)).To(Succeed())
		expectHeld(ctx, set, "sample-1", inplace.ReasonPreNormalHook)
		Eventually(ctx, func() bool { return podutils.IsPodReady(getPod(ctx, set, 1)) }).Should(BeTrue())
		Expect(set.Status.AvailableReplicas).To(BeZero())

		holdAgain(ctx, set, 0)
		holdAgain(ctx, set, 1)
		waitSettled(ctx, set)
		Expect(stateOf(getPod(ctx, set, 0))).To(Equal(appsv1beta1.LifecycleStateNormal))
	})

	// What docs/lifecycle.md says of kubectl delete pod.
	It("do not stop a user's deletion: the containers end, and the finalizer keeps the name", func(ctx context.Context) {
		set := create(ctx, hooked(namespace, appsv1beta1.Lifecycle{PreDelete: blockerHook(false)}))
		pod := getPod(ctx, set, 1)
		Expect(api.Delete(ctx, pod)).To(Succeed())
		Eventually(ctx, func(g Gomega) {
			now := getPod(ctx, set, 1)
			g.Expect(now.UID).To(Equal(pod.UID))
			g.Expect(now.Status.ContainerStatuses[0].State.Terminated).NotTo(BeNil())
		}).Should(Succeed())
		release(ctx, set, 1)
		Eventually(ctx, func(g Gomega) {
			now := &corev1.Pod{}
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(pod), now)).To(Succeed())
			g.Expect(now.UID).NotTo(Equal(pod.UID))
		}).Should(Succeed())
	})
})
