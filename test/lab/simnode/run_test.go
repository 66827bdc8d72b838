// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package simnode

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var _ = Describe("Simulated nodes", func() {
	var (
		ctx       context.Context
		namespace string
	)
	BeforeEach(func(spec SpecContext) {
		ctx = context.Background()
		namespace = newNamespace(spec)
	})

	create := func(pod *corev1.Pod) {
		pod.Namespace, pod.UID, pod.Generation = namespace, "", 0
		for i := range pod.Spec.Containers {
			pod.Spec.Containers[i].ImagePullPolicy = corev1.PullIfNotPresent
		}
		_, err := client.CoreV1().Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	get := func() *corev1.Pod {
		pod, err := client.CoreV1().Pods(namespace).Get(ctx, "sample-0", metav1.GetOptions{})
		Expect(err).NotTo(HaveOccurred())
		return pod
	}
	patch := func(content string, subresources ...string) error {
		_, err := client.CoreV1().Pods(namespace).Patch(ctx, "sample-0", types.StrategicMergePatchType,
			[]byte(content), metav1.PatchOptions{}, subresources...)
		return err
	}
	setImage := func(container, image string) {
		Expect(patch(fmt.Sprintf(`{"spec":{"containers":[{"name":%q,"image":%q}]}}`, container, image))).To(Succeed())
	}
	ready := func() bool {
		pod := get()
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady {
				return condition.Status == corev1.ConditionTrue && pod.Status.ObservedGeneration == pod.Generation
			}
		}
		return false
	}
	gone := func() bool {
		_, err := client.CoreV1().Pods(namespace).Get(ctx, "sample-0", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}

	It("register themselves and stay alive", func() {
		start(Options{Nodes: 3, Timing: Timing{Lease: 100 * time.Millisecond}})
		var node *corev1.Node
		Eventually(func() error {
			var err error
			node, err = client.CoreV1().Nodes().Get(ctx, "sim-3", metav1.GetOptions{})
			return err
		}).Should(Succeed())
		Expect(node.Labels).To(HaveKeyWithValue("insitu.dev/simulated", "true"))
		Expect(node.Spec.Taints).To(ContainElement(corev1.Taint{
			Key: "insitu.dev/simulated", Value: "true", Effect: corev1.TaintEffectNoSchedule}))
		Expect(node.Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.NodeReady), HaveField("Status", corev1.ConditionTrue))))
		Expect(node.Status.Allocatable.Pods().Value()).To(BeEquivalentTo(1000))

		renewed := func() time.Time {
			lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(ctx, "sim-3", metav1.GetOptions{})
			if err != nil {
				return time.Time{}
			}
			return lease.Spec.RenewTime.Time
		}
		Eventually(renewed).ShouldNot(BeZero())
		Eventually(renewed).Should(BeTemporally(">", renewed()))
	})

	It("run a pod, update it in place and remove it", func() {
		start(Options{Nodes: 1})
		create(newPod("main", "nginx:alpine", "other", "nginx:alpine"))
		Eventually(ready).Should(BeTrue())
		before := get()
		Expect(before.Status.PodIP).To(HavePrefix("100."))

		setImage("main", "nginx:latest")
		Eventually(func() int32 { return get().Status.ContainerStatuses[0].RestartCount }).Should(BeEquivalentTo(1))
		after := get()
		Expect(after.UID).To(Equal(before.UID))
		Expect(after.Status.PodIP).To(Equal(before.Status.PodIP))
		Expect(after.Status.ContainerStatuses[1]).To(Equal(before.Status.ContainerStatuses[1]))
		Expect(after.Status.ContainerStatuses[0].ImageID).NotTo(Equal(before.Status.ContainerStatuses[0].ImageID))
		Expect(after.Status.ObservedGeneration).To(Equal(after.Generation))

		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "sample-0", metav1.DeleteOptions{})).To(Succeed())
		Eventually(gone).Should(BeTrue())
	})

	It("write nothing about a pod at rest", func() {
		start(Options{Nodes: 1})
		create(newPod("main", "nginx:alpine"))
		Eventually(ready).Should(BeTrue())
		Consistently(func() string { return get().ResourceVersion }, "1s").Should(Equal(get().ResourceVersion))
	})

	It("keep the conditions of others and follow the gates", func() {
		start(Options{Nodes: 1})
		pod := newPod("main", "nginx:alpine")
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "InPlaceUpdateReady"}}
		create(pod)
		Eventually(func() corev1.PodPhase { return get().Status.Phase }).Should(Equal(corev1.PodRunning))
		Consistently(ready, "300ms").Should(BeFalse())
		Expect(patch(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"True"}]}}`, "status")).To(Succeed())
		Eventually(ready).Should(BeTrue())
		Expect(patch(`{"status":{"conditions":[{"type":"InPlaceUpdateReady","status":"False"}]}}`, "status")).To(Succeed())
		Eventually(ready).Should(BeFalse())
		Expect(get().Status.Conditions).To(ContainElement(And(
			HaveField("Type", corev1.PodConditionType("InPlaceUpdateReady")), HaveField("Status", corev1.ConditionFalse))))
	})

	It("remove a pod with a finalizer when that is taken off", func() {
		start(Options{Nodes: 1})
		pod := newPod("main", "nginx:alpine")
		pod.Finalizers = []string{"example.io/hold"}
		create(pod)
		Eventually(ready).Should(BeTrue())
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "sample-0", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() *int64 { return get().DeletionGracePeriodSeconds }).Should(HaveValue(BeZero()))
		Consistently(gone, "300ms").Should(BeFalse())
		Expect(get().Status.Phase).To(Equal(corev1.PodSucceeded))
		Expect(patch(`{"metadata":{"$deleteFromPrimitiveList/finalizers":["example.io/hold"]}}`)).To(Succeed())
		Eventually(gone).Should(BeTrue())
	})

	It("let pods be evicted while they start", func() {
		start(Options{Nodes: 1, Timing: Timing{Sandbox: time.Second}})
		create(newPod("main", "nginx:alpine"))
		Eventually(func() int64 { return get().Status.ObservedGeneration }).Should(BeEquivalentTo(1))
		Expect(client.CoreV1().Pods(namespace).EvictV1(ctx, &policyv1.Eviction{
			ObjectMeta: metav1.ObjectMeta{Name: "sample-0", Namespace: namespace}})).To(Succeed())
		Eventually(gone).Should(BeTrue())
	})

	It("tell a new pod from an old one of the same name", func() {
		start(Options{Nodes: 1})
		create(newPod("main", "nginx:alpine"))
		Eventually(ready).Should(BeTrue())
		setImage("main", "nginx:latest")
		Eventually(func() int32 { return get().Status.ContainerStatuses[0].RestartCount }).Should(BeEquivalentTo(1))
		Eventually(ready).Should(BeTrue())
		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "sample-0", metav1.DeleteOptions{
			GracePeriodSeconds: new(int64)})).To(Succeed())
		create(newPod("main", "nginx:alpine"))
		Eventually(ready).Should(BeTrue())
		Expect(get().Status.ContainerStatuses[0].RestartCount).To(BeZero())
	})

	It("go on after a restart as if nothing had been", func() {
		stop := start(Options{Nodes: 1})
		create(newPod("main", "nginx:alpine"))
		Eventually(ready).Should(BeTrue())
		stop()
		before := get()
		start(Options{Nodes: 1})
		Consistently(func() string { return get().ResourceVersion }, "1s").Should(Equal(before.ResourceVersion))
		setImage("main", "nginx:latest")
		Eventually(func() int32 { return get().Status.ContainerStatuses[0].RestartCount }).Should(BeEquivalentTo(1))
	})

	It("defer a resize until there is room", func() {
		start(Options{Nodes: 1, Allocatable: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"),
			corev1.ResourcePods: resource.MustParse("10"),
		}})
		hog := newPod("main", "nginx:alpine")
		hog.Name = "hog"
		hog.Spec.Containers[0].Resources = requests("1500m", "64Mi")
		create(hog)
		pod := newPod("main", "nginx:alpine")
		pod.Spec.Containers[0].Resources = requests("100m", "64Mi")
		create(pod)
		Eventually(ready).Should(BeTrue())

		resize := func(cpu string) error {
			return patch(fmt.Sprintf(`{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":%q}}}]}}`, cpu), "resize")
		}
		Expect(resize("1000")).To(MatchError(ContainSubstring("node didn't have enough allocatable resources")))
		Expect(resize("1")).To(Succeed())
		Eventually(func() []corev1.PodCondition { return get().Status.Conditions }).Should(ContainElement(And(
			HaveField("Type", corev1.PodResizePending),
			HaveField("Reason", corev1.PodReasonDeferred),
			HaveField("Message", "Node didn't have enough resource: cpu, requested: 1000, used: 1500, capacity: 2000"))))

		Expect(client.CoreV1().Pods(namespace).Delete(ctx, "hog", metav1.DeleteOptions{})).To(Succeed())
		Eventually(func() string {
			return get().Status.ContainerStatuses[0].Resources.Requests.Cpu().String()
		}).Should(Equal("1"))
		Expect(get().Status.ContainerStatuses[0].RestartCount).To(BeZero())
	})

	It("hold hundreds of pods", func() {
		start(Options{Nodes: 5})
		const count = 300
		for i := range count {
			pod := newPod("main", "nginx:alpine")
			pod.Name, pod.Spec.NodeName = fmt.Sprintf("sample-%d", i), nodeName(i%5+1)
			create(pod)
		}
		ips := map[string]bool{}
		Eventually(func(g Gomega) {
			pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			for _, pod := range pods.Items {
				g.Expect(pod.Status.Phase).To(Equal(corev1.PodRunning))
				ips[pod.Status.PodIP] = true
			}
		}).WithPolling(time.Second).Should(Succeed())
		Expect(ips).To(HaveLen(count))
	})

	DescribeTable("refuse wrong options", func(opts Options, want string) {
		Expect(Run(ctx, config, opts)).To(MatchError(ContainSubstring(want)))
	},
		Entry("no nodes", Options{}, "Nodes is 0, want at least 1"),
		Entry("no range", Options{Nodes: 1, PodCIDR: "10.0.0.1"}, `PodCIDR is "10.0.0.1", want a range`),
		Entry("too few addresses", Options{Nodes: 10, NodeCIDR: "192.0.2.0/30"}, "take an address of 192.0.2.0/30: all 3 are in use"),
	)

	It("leave a node alone that is not simulated", func() {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "sim-77"}}
		_, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		Expect(Run(ctx, config, Options{Nodes: 77})).To(MatchError(ContainSubstring(
			"register node sim-77: a node of this name exists and is not simulated")))
	})
})
