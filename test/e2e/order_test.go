// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
)

// lab runs a command of the lab.
func lab(ctx context.Context, args ...string) {
	GinkgoHelper()
	output, err := exec.CommandContext(ctx, filepath.Join("..", "..", "hack", "lab"), append(args, "--dir", labPath)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(output))
}

// killNode ends a node as a power cut does, and returns what brings it back. The
// spec's end does so, too, and waits until the operator is whole again.
func killNode(ctx context.Context, name string) (start func(context.Context)) {
	GinkgoHelper()
	var once sync.Once
	start = func(ctx context.Context) { once.Do(func() { lab(ctx, "node", "start", name) }) }
	DeferCleanup(func(ctx context.Context) {
		start(ctx)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			operators := &corev1.PodList{}
			g.Expect(api.List(ctx, operators, client.InNamespace(operatorNamespace))).To(Succeed())
			for i := range operators.Items {
				g.Expect(podutils.IsPodReady(&operators.Items[i])).To(BeTrue(), operators.Items[i].Name)
			}
		}).Should(Succeed())
	})
	lab(ctx, "node", "kill", name)
	return start
}

// alone returns the pod that is the only one of those found on its node.
func alone(found []observe.Pod) observe.Pod {
	GinkgoHelper()
	onNode := map[string][]observe.Pod{}
	for _, p := range found {
		onNode[p.Node] = append(onNode[p.Node], p)
	}
	for _, pods := range onNode {
		if len(pods) == 1 {
			return pods[0]
		}
	}
	Fail("no pod is alone on its node")
	return observe.Pod{}
}

// traffic is a readiness gate of a user's.
const traffic corev1.PodConditionType = "example.com/traffic"

// setTraffic opens or closes the gate of all pods of a set.
func setTraffic(ctx context.Context, set *appsv1beta1.StatefulSet, status corev1.ConditionStatus) {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(api.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingLabels{"app": set.Name})).To(Succeed())
	for i := range list.Items {
		pod := &list.Items[i]
		before := pod.DeepCopy()
		pod.Status.Conditions = []corev1.PodCondition{{Type: traffic, Status: status, LastTransitionTime: metav1.Now()}}
		for _, condition := range before.Status.Conditions {
			if condition.Type != traffic {
				pod.Status.Conditions = append(pod.Status.Conditions, condition)
			}
		}
		Expect(api.Status().Patch(ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
	}
}

var _ = Describe("The order of pods", func() {
	var namespace string
	BeforeEach(func(ctx context.Context) { namespace = newNamespace(ctx) })

	It("is that of the weights, and the partition is a number", func(ctx context.Context) {
		tier := func(weight int32, name string) appsv1beta1.UpdatePriorityWeightTerm {
			return appsv1beta1.UpdatePriorityWeightTerm{Weight: weight, MatchSelector: metav1.LabelSelector{MatchLabels: map[string]string{"tier": name}}}
		}
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).Replicas(4).Partition(1).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.UpdateStrategy.RollingUpdate.UnorderedUpdate = &appsv1beta1.UnorderedUpdateStrategy{
				PriorityStrategy: &appsv1beta1.UpdatePriorityStrategy{
					WeightPriority: []appsv1beta1.UpdatePriorityWeightTerm{tier(10, "core"), tier(90, "edge")},
				},
			}
		}))
		for pod, tier := range map[string]string{"sample-0": "edge", "sample-1": "core", "sample-2": "edge"} {
			output, err := kubectl(ctx, "label", "pod", pod, "tier="+tier, "-n", namespace)
			Expect(err).NotTo(HaveOccurred(), output)
		}
		before := pods(ctx, set)
		written := len(operatorWrites(namespace))
		setImage(ctx, set, nginxLatest)
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.UpdatedReadyReplicas).To(BeEquivalentTo(3))
			g.Expect(meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionReady)).To(
				HaveField("Reason", appsv1beta1.ReasonPartitionReached))
		})
		order := slices.DeleteFunc(operatorWrites(namespace)[written:], func(write string) bool {
			return !strings.HasPrefix(write, "patch pods/ ")
		})
		Expect(order).To(Equal([]string{"patch pods/ sample-2", "patch pods/ sample-0", "patch pods/ sample-1"}))
		expectInPlace(before[:3], pods(ctx, set)[:3], 1)
		expectInPlace(before[3:], pods(ctx, set)[3:], 0)
	})

	It("of a scale-down halts while pods are not healthy, as that of Kubernetes does", func(ctx context.Context) {
		set := builders.StatefulSet(namespace, "sample", nginxAlpine).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
			gates := &s.Spec.Template.Spec.ReadinessGates
			*gates = append(*gates, corev1.PodReadinessGate{ConditionType: traffic})
		}).Build()
		Expect(api.Create(ctx, set)).To(Succeed())
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			setTraffic(ctx, set, corev1.ConditionTrue)
			g.Expect(api.Get(ctx, client.ObjectKeyFromObject(set), set)).To(Succeed())
			isSettled(g, set)
		}).Should(Succeed())
		setTraffic(ctx, set, corev1.ConditionFalse)
		Eventually(ctx, func(ctx context.Context) []observe.Pod { return pods(ctx, set) }).Should(HaveEach(HaveField("Ready", false)))
		before := pods(ctx, set)

		output, err := kubectl(ctx, "scale", "statefulsets.apps.kruise.io", "sample", "--replicas=0", "-n", namespace)
		Expect(err).NotTo(HaveOccurred(), output)
		Consistently(ctx, func(g Gomega, ctx context.Context) {
			g.Expect(observe.Differences(before, pods(ctx, set), 0)).To(BeEmpty())
		}).WithTimeout(8 * time.Second).Should(Succeed())

		written := len(operatorWrites(namespace))
		setTraffic(ctx, set, corev1.ConditionTrue)
		Eventually(ctx, func(ctx context.Context) []observe.Pod { return pods(ctx, set) }).Should(BeEmpty())
		deleted := slices.DeleteFunc(operatorWrites(namespace)[written:], func(write string) bool { return !strings.HasPrefix(write, "delete pods/ ") })
		Expect(deleted).To(Equal([]string{"delete pods/ sample-2", "delete pods/ sample-1", "delete pods/ sample-0"}))
	})

	It("is interrupted by a label that asks for pods to be deleted", func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine))
		before := pods(ctx, set)
		change(ctx, set, func(s *appsv1beta1.StatefulSet) { s.Spec.UpdateStrategy.RollingUpdate.Paused = true })
		output, err := kubectl(ctx, "label", "pod", "sample-0", "sample-2", appsv1beta1.SpecifiedDeleteKey+"=true", "-n", namespace)
		Expect(err).NotTo(HaveOccurred(), output)

		Eventually(ctx, func(g Gomega, ctx context.Context) {
			found := pods(ctx, set)
			ready := 0
			for _, p := range found {
				if p.Ready {
					ready++
				}
			}
			if ready < 2 {
				StopTrying("more pods are out of service than maxUnavailable").Attach("pods", found).Now()
			}
			g.Expect(ready).To(Equal(3))
			g.Expect(found[0].UID).NotTo(Equal(before[0].UID))
			g.Expect(found[2].UID).NotTo(Equal(before[2].UID))
		}).WithPolling(50 * time.Millisecond).Should(Succeed())
		waitSettled(ctx, set)
		expectInPlace(before[1:2], pods(ctx, set)[1:2], 0)
		expectEvent(ctx, namespace, "StatefulSet", appsv1beta1.ReasonRecreating, "the label "+appsv1beta1.SpecifiedDeleteKey)
	})

	It("goes on beside a pod that a dead node keeps", Serial, func(ctx context.Context) {
		set := create(ctx, builders.StatefulSet(namespace, "sample", nginxAlpine).MaxUnavailable(2).With(func(s *appsv1beta1.StatefulSet) {
			s.Spec.Template.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: s.Spec.Selector,
			}}
		}))
		before := pods(ctx, set)
		victim := alone(before)
		startNode := killNode(ctx, victim.Node)
		output, err := kubectl(ctx, "delete", "pod", victim.Name, "-n", namespace, "--wait=false")
		Expect(err).NotTo(HaveOccurred(), output)
		setImage(ctx, set, nginxLatest)

		others := func(found []observe.Pod) []observe.Pod {
			return slices.DeleteFunc(found, func(p observe.Pod) bool { return p.Name == victim.Name })
		}
		eventually(ctx, set, func(g Gomega, set *appsv1beta1.StatefulSet) {
			g.Expect(set.Status.UpdatedAvailableReplicas).To(BeEquivalentTo(2))
			g.Expect(meta.FindStatusCondition(set.Status.Conditions, appsv1beta1.ConditionStalled)).To(And(
				HaveField("Status", metav1.ConditionTrue), HaveField("Reason", inplace.ReasonTerminationOverdue),
				HaveField("Message", And(ContainSubstring("pod "+victim.Name), ContainSubstring("on node "+victim.Node), ContainSubstring("--force")))))
		})
		expectInPlace(others(slices.Clone(before)), others(pods(ctx, set)), 1)
		Expect(getPodNamed(ctx, namespace, victim.Name).UID).To(Equal(victim.UID), "it is not known whether it still runs")

		startNode(ctx)
		waitSettled(ctx, set)
		Expect(getPodNamed(ctx, namespace, victim.Name).UID).NotTo(Equal(victim.UID))
		Expect(pods(ctx, set)).To(And(HaveLen(3), HaveEach(HaveField("Ready", true)), HaveEach(HaveField("Image", nginxLatest))))
	})
})

func getPodNamed(ctx context.Context, namespace, name string) *corev1.Pod {
	GinkgoHelper()
	pod := &corev1.Pod{}
	Expect(api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod)).To(Succeed())
	return pod
}
