// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/podutils"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/short"
)

// fullNode and emptyNode are the nodes of the lab. On the full one there is room
// for one of three pods to grow from slim to wide.
const (
	fullNode  = "node-1"
	emptyNode = "node-2"
)

var (
	slim = size{cpu: "100m", memory: "32Mi"}
	wide = size{cpu: "300m", memory: "32Mi"}
)

// roomToGrow is what is left on the full node.
const roomToGrow = "220m"

// cordon keeps new pods from a node, or lets them go there again.
func cordon(ctx context.Context, name string, on bool) {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(api.Get(ctx, client.ObjectKey{Name: name}, node)).To(Succeed())
	before := node.DeepCopy()
	node.Spec.Unschedulable = on
	Expect(api.Patch(ctx, node, client.MergeFrom(before))).To(Succeed())
}

// onFullNode makes the pods of create go to the full node, and fills it.
func onFullNode(ctx context.Context, namespace string, create func()) (filler *corev1.Pod) {
	GinkgoHelper()
	waitForOthersToEnd(ctx, namespace)
	DeferCleanup(func(ctx context.Context) { cordon(ctx, emptyNode, false) })
	cordon(ctx, emptyNode, true)
	create()
	cordon(ctx, emptyNode, false)
	filler = &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "filler"},
		Spec: corev1.PodSpec{
			NodeName: fullNode, TerminationGracePeriodSeconds: ptr.To[int64](1),
			Containers: []corev1.Container{{Name: "main", Image: sleeperV1, Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: freeCPU(ctx, resource.MustParse(roomToGrow))},
			}}},
		},
	}
	Expect(api.Create(ctx, filler)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(filler), filler)).To(Succeed())
		g.Expect(podutils.IsPodReady(filler)).To(BeTrue(), "%+v", filler.Status)
	}).Should(Succeed())
	return filler
}

// waitForOthersToEnd waits until the pods of earlier specs are gone: they take
// room.
func waitForOthersToEnd(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega) {
		list := &corev1.PodList{}
		g.Expect(api.List(ctx, list)).To(Succeed())
		for i := range list.Items {
			other := list.Items[i].Namespace
			g.Expect(strings.HasPrefix(other, "e2e-") && other != namespace).To(BeFalse(), other)
		}
	}).Should(Succeed())
}

// freeCPU returns how much CPU no pod has requested on the full node, less what is
// to be left.
func freeCPU(ctx context.Context, leave resource.Quantity) resource.Quantity {
	GinkgoHelper()
	node := &corev1.Node{}
	Expect(api.Get(ctx, client.ObjectKey{Name: fullNode}, node)).To(Succeed())
	list := &corev1.PodList{}
	Expect(api.List(ctx, list)).To(Succeed())
	free := node.Status.Allocatable.Cpu().DeepCopy()
	free.Sub(leave)
	for i := range list.Items {
		if list.Items[i].Spec.NodeName == fullNode {
			requests := resourcehelper.PodRequests(&list.Items[i], resourcehelper.PodResourcesOptions{})
			free.Sub(*requests.Cpu())
		}
	}
	return free
}

// protect makes a PodDisruptionBudget for the pods of a namespace.
func protect(ctx context.Context, namespace string, minAvailable int32) *policyv1.PodDisruptionBudget {
	GinkgoHelper()
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "quorum"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(minAvailable)),
			Selector:     &metav1.LabelSelector{MatchLabels: map[string]string{"app": "sample"}},
		},
	}
	Expect(api.Create(ctx, budget)).To(Succeed())
	Eventually(ctx, func(g Gomega) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(budget), budget)).To(Succeed())
		g.Expect(budget.Status.CurrentHealthy).To(BeEquivalentTo(3))
	}).Should(Succeed())
	return budget
}

// evictions returns how often the operator asked for the eviction of a pod.
func evictions(namespace string) int {
	GinkgoHelper()
	n := 0
	for _, write := range operatorWrites(namespace) {
		if strings.HasPrefix(write, "create pods/eviction") {
			n++
		}
	}
	return n
}

// moved counts the pods that are not those from before, and checks that the others
// are as they were, on the full node.
func moved(ctx context.Context, namespace string, before map[string]identity) int {
	GinkgoHelper()
	n := 0
	for name, now := range identities(ctx, namespace) {
		if was, ok := before[name]; ok && was.uid == now.uid {
			Expect(now).To(Equal(was))
			continue
		}
		Expect(now.node).To(Equal(emptyNode))
		n++
	}
	return n
}

var _ = Describe("A resize for which the node has no room", Serial, func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	// noRoom waits until two of three pods are waiting for room, and serve.
	noRoom := func(ctx context.Context, set *appsv1beta1.StatefulSet) {
		GinkgoHelper()
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Resize).To(HaveValue(HaveField("Deferred", BeEquivalentTo(2))))
			g.Expect(set.Status.Blockers).To(And(HaveLen(2), HaveEach(And(HaveField("Reason", inplace.ReasonResizeDeferred),
				HaveField("Message", ContainSubstring("Node didn't have enough resource: cpu, requested: 300"))))))
		})
		Expect(pods(ctx, set)).To(HaveEach(HaveField("Ready", true)))
	}
	all := ptr.To(intstr.FromString("100%"))

	It("waits, and goes on when there is room", short.Spec, func(ctx context.Context) {
		var set *appsv1beta1.StatefulSet
		filler := onFullNode(ctx, namespace, func() {
			set = create(ctx, sized(namespace, slim).With(resizing(appsv1beta1.ResizePolicy{MaxConcurrent: all})))
		})
		before, seen := identities(ctx, namespace), watchPods(ctx, namespace)
		change(ctx, set, to(wide))
		noRoom(ctx, set)
		expectEvent(ctx, namespace, "Pod", inplace.ReasonResizeDeferred, "Node didn't have enough resource")

		// Back, and again.
		change(ctx, set, to(slim))
		waitSettled(ctx, set)
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, slim)
		}
		change(ctx, set, to(wide))
		noRoom(ctx, set)

		Expect(api.Delete(ctx, filler)).To(Succeed())
		waitSettled(ctx, set)
		expectInService(seen())
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, wide)
		}
		Expect(evictions(namespace)).To(BeZero())
	})

	It("moves pods through the eviction API where it says Recreate, and a PodDisruptionBudget holds them", func(ctx context.Context) {
		var set *appsv1beta1.StatefulSet
		onFullNode(ctx, namespace, func() {
			set = create(ctx, sized(namespace, slim).With(resizing(appsv1beta1.ResizePolicy{
				MaxConcurrent: all, OnDeferred: appsv1beta1.RecreateResizeDeferred,
			})))
		})
		budget := protect(ctx, namespace, 3)
		before := identities(ctx, namespace)
		change(ctx, set, to(wide))
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.Blockers).To(ContainElement(HaveField("Message", ContainSubstring("quorum"))))
		})
		Expect(moved(ctx, namespace, before)).To(BeZero())

		Expect(api.Delete(ctx, budget)).To(Succeed())
		waitSettled(ctx, set)
		Expect(moved(ctx, namespace, before)).To(Equal(2))
		Expect(evictions(namespace)).To(BeNumerically(">=", 2))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, wide)
		}
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonRecreating, "Node didn't have enough resource")
	})

	It("moves pods of a CloneSet when it has waited for too long", func(ctx context.Context) {
		var set *clones
		onFullNode(ctx, namespace, func() {
			set = newClones(ctx, builders.CloneSet(namespace, "sample", sleeperV1).With(func(s *appsv1beta1.CloneSet) {
				s.Spec.Template.Spec.Containers[0].Resources = slim.resources()
				s.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = &appsv1beta1.InPlaceUpdateStrategy{Resize: &appsv1beta1.ResizePolicy{
					MaxConcurrent: all, DeferredTimeoutSeconds: ptr.To[int32](3), OnInfeasible: appsv1beta1.RecreateResizeFailure,
				}}
			}))
		})
		before := identities(ctx, namespace)
		set.change(ctx, func(s *appsv1beta1.CloneSet) { s.Spec.Template.Spec.Containers[0].Resources = wide.resources() })
		set.waitSettled(ctx)
		Expect(moved(ctx, namespace, before)).To(Equal(2))
		Expect(evictions(namespace)).To(BeNumerically(">=", 2))
		for _, pod := range set.live(ctx) {
			expectSize(pod, wide)
		}
		expectEvent(ctx, namespace, "CloneSet", appsv1beta1.ReasonRecreating, "no room for longer than 3s")
	})

	It("keeps pods under InPlaceOnly, whatever the policy says", func(ctx context.Context) {
		var set *appsv1beta1.StatefulSet
		onFullNode(ctx, namespace, func() {
			set = create(ctx, sized(namespace, slim).Policy(appsv1beta1.InPlaceOnlyPodUpdateStrategyType).With(resizing(appsv1beta1.ResizePolicy{
				MaxConcurrent: all, DeferredTimeoutSeconds: ptr.To[int32](3), OnInfeasible: appsv1beta1.RecreateResizeFailure,
			})))
		})
		before := identities(ctx, namespace)
		change(ctx, set, to(wide))
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			expectStalled(g, set, inplace.ReasonResizeInfeasible, "no room for longer than 3s")
			g.Expect(set.Status.Resize).To(HaveValue(HaveField("Kept", BeEquivalentTo(2))))
		})
		Expect(identities(ctx, namespace)).To(Equal(before))
		Expect(evictions(namespace)).To(BeZero())

		change(ctx, set, to(slim))
		waitSettled(ctx, set)
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, pod := range getPods(ctx, set) {
			expectSize(pod, slim)
		}
	})
})
