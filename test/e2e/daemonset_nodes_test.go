// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/test/observe"
)

// labNodes returns the names of the nodes of the lab in their order, of which these specs need
// two.
func labNodes(ctx context.Context) []string {
	GinkgoHelper()
	list := &corev1.NodeList{}
	Expect(api.List(ctx, list)).To(Succeed())
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	Expect(len(names)).To(BeNumerically(">=", 2), "nodes of the lab: %v", names)
	return names
}

// labelOf returns a label of nodes that no other spec uses.
func labelOf(namespace string) string { return "example.com/" + namespace }

// labelNode gives a node a label, at the longest until the end of the spec.
func labelNode(ctx context.Context, node, label string) {
	GinkgoHelper()
	DeferCleanup(func(ctx context.Context) { unlabelNode(ctx, node, label) })
	patchNode(ctx, node, fmt.Sprintf(`{"metadata":{"labels":{%q:"yes"}}}`, label))
}

func unlabelNode(ctx context.Context, node, label string) {
	GinkgoHelper()
	patchNode(ctx, node, fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, label))
}

func patchNode(ctx context.Context, name, patch string) {
	GinkgoHelper()
	node := &corev1.Node{}
	node.Name = name
	Expect(api.Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// maintain sets a condition of a node, as whoever maintains it does.
func maintain(ctx context.Context, node string, condition corev1.NodeConditionType, is corev1.ConditionStatus) {
	GinkgoHelper()
	set := fmt.Sprintf(`{"type":%q,"status":%q,"reason":"Test","message":"","lastTransitionTime":%q}`, condition, is, time.Now().UTC().Format(time.RFC3339))
	patchConditions(ctx, node, set)
}

func patchConditions(ctx context.Context, node, condition string) {
	GinkgoHelper()
	_, err := kube.CoreV1().Nodes().PatchStatus(ctx, node, []byte(`{"status":{"conditions":[`+condition+`]}}`))
	Expect(err).NotTo(HaveOccurred())
}

// waitForNode waits until it is known of a set that a pod waits for its node, and why.
func (d *daemons) waitForNode(ctx context.Context, pod, why string) {
	GinkgoHelper()
	d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
		g.Expect(status.Blockers).To(ContainElement(And(
			HaveField("Pod", pod), HaveField("Reason", inplace.ReasonNodeUnavailable), HaveField("Message", ContainSubstring(why)))))
	})
}

var _ = Describe("A DaemonSet on nodes that come and go", func() {
	var namespace, label string
	var nodes []string
	BeforeEach(func(ctx context.Context) {
		namespace, nodes = newNamespace(ctx), labNodes(ctx)
		label = labelOf(namespace)
	})

	It("has the pod of a node that is relabelled out held by preDelete, and back when the node is", func(ctx context.Context) {
		const hold = "example.com/hold"
		staying, leaving := nodes[0], nodes[1]
		labelNode(ctx, staying, label)
		labelNode(ctx, leaving, label)
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine, onNodesWith(label), func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Labels[hold] = "true"
			set.Spec.Lifecycle = &appsv1beta1.Lifecycle{PreDelete: &appsv1beta1.LifecycleHook{LabelsHandler: map[string]string{hold: "true"}}}
		}), staying, leaving)
		before := d.pods(ctx)

		unlabelNode(ctx, leaving, label)
		d.waitHeld(ctx, leaving, appsv1beta1.LifecycleStatePreparingDelete)
		labelNode(ctx, leaving, label)
		d.waitHeld(ctx, leaving, appsv1beta1.LifecycleStateNormal)
		d.waitSettled(ctx, staying, leaving)
		expectInPlace(before, d.pods(ctx), 0)

		unlabelNode(ctx, leaving, label)
		pod := d.waitHeld(ctx, leaving, appsv1beta1.LifecycleStatePreparingDelete)
		output, err := kubectl(ctx, "label", "pod", pod.Name, hold+"-", "-n", namespace)
		Expect(err).NotTo(HaveOccurred(), output)
		d.waitSettled(ctx, staying)

		labelNode(ctx, leaving, label)
		d.waitSettled(ctx, staying, leaving)
		Expect(d.on(ctx, leaving).UID).NotTo(Equal(pod.UID))
	})

	// In the middle of a rollout of which the partition keeps all nodes, another one comes.
	comes := func(ctx context.Context, partitioned bool) (d *daemons, old, added string) {
		GinkgoHelper()
		old, added = nodes[0], nodes[1]
		labelNode(ctx, old, label)
		d = newDaemons(ctx, newDaemonSet(namespace, nginxAlpine, onNodesWith(label), func(set *appsv1beta1.DaemonSet) {
			set.Spec.ScaleStrategy = &appsv1beta1.DaemonSetScaleStrategy{PartitionedScaling: partitioned}
		}), old)
		d.change(ctx, ofImage(nginxLatest), keeping("100%"))
		d.waitKept(ctx, 0)
		labelNode(ctx, added, label)
		return d, old, added
	}

	It("gives a node that comes in the middle its pod at the new revision", func(ctx context.Context) {
		d, old, added := comes(ctx, false)
		d.waitKept(ctx, 1)
		Expect(d.images(ctx)).To(Equal(map[string]string{old: nginxAlpine, added: nginxLatest}))
		d.change(ctx, keeping(""))
		d.waitSettled(ctx, old, added)
	})

	It("leaves a node without a pod as long as partitionedScaling says so", func(ctx context.Context) {
		d, old, added := comes(ctx, true)
		before := d.pods(ctx)
		d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
			g.Expect(status.DesiredNumberScheduled).To(BeEquivalentTo(2))
		})
		d.waitKept(ctx, 0)
		Consistently(ctx, func(ctx context.Context) []observe.Pod { return d.pods(ctx) }).WithTimeout(5 * time.Second).Should(Equal(before))

		d.change(ctx, keeping("1"))
		d.waitKept(ctx, 1)
		Expect(d.images(ctx)).To(Equal(map[string]string{old: nginxAlpine, added: nginxLatest}))
		d.change(ctx, keeping(""))
		d.waitSettled(ctx, old, added)
		Expect(d.on(ctx, old).UID).To(Equal(before[0].UID))
	})

	It("goes on where a node is cordoned in the middle, and gives it a pod", Serial, func(ctx context.Context) {
		cordoned := nodes[0]
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine), nodes...)
		before := d.pods(ctx)
		d.change(ctx, ofImage(nginxLatest), keeping(fmt.Sprint(len(nodes)-1)))
		d.waitKept(ctx, 1)
		DeferCleanup(func(ctx context.Context) { cordon(ctx, cordoned, false) })
		cordon(ctx, cordoned, true)
		d.change(ctx, keeping(""))
		d.waitSettled(ctx, nodes...)
		expectInPlace(before, d.pods(ctx), 1)

		gone := d.on(ctx, cordoned)
		Expect(api.Delete(ctx, gone)).To(Succeed())
		Eventually(ctx, func(ctx context.Context) []types.UID { return uids(d.pods(ctx)) }).ShouldNot(ContainElement(gone.UID))
		d.waitSettled(ctx, nodes...)
	})

	It("leaves the pod of a node that is being drained alone, and updates the others", Serial, func(ctx context.Context) {
		drained := nodes[len(nodes)-1] // its turn is the first
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine), nodes...)
		before := d.pods(ctx)
		DeferCleanup(func(ctx context.Context) {
			patchConditions(ctx, drained, `{"type":"DrainInProgress","$patch":"delete"}`)
		})
		maintain(ctx, drained, corev1.NodeDrainInProgress, corev1.ConditionTrue)
		d.change(ctx, ofImage(nginxLatest))
		d.waitForNode(ctx, d.on(ctx, drained).Name, "node "+drained+" is being maintained: DrainInProgress")
		wanted := map[string]string{}
		for _, node := range nodes {
			wanted[node] = nginxLatest
		}
		wanted[drained] = nginxAlpine
		Eventually(ctx, d.images).Should(Equal(wanted))
		d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
			g.Expect(status.UpdatedNumberScheduled).To(BeEquivalentTo(len(nodes) - 1))
			g.Expect(status.NumberAvailable).To(BeEquivalentTo(len(nodes)))
		})

		maintain(ctx, drained, corev1.NodeDrainInProgress, corev1.ConditionFalse)
		d.waitSettled(ctx, nodes...)
		expectInPlace(before, d.pods(ctx), 1)
	})

	It("goes on beside a node that dies in the middle, and updates its pod when it is back", Serial, func(ctx context.Context) {
		victim, others := nodes[len(nodes)-1], nodes[:len(nodes)-1]
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine), nodes...)
		before := d.pods(ctx)
		d.change(ctx, ofImage(nginxLatest), keeping("100%"))
		d.waitKept(ctx, 0)
		startNode := killNode(ctx, victim)
		Eventually(ctx, func(g Gomega, ctx context.Context) {
			node := &corev1.Node{}
			g.Expect(api.Get(ctx, client.ObjectKey{Name: victim}, node)).To(Succeed())
			g.Expect(node.Status.Conditions).To(ContainElement(And(
				HaveField("Type", corev1.NodeReady), HaveField("Status", Not(Equal(corev1.ConditionTrue))))))
		}).Should(Succeed())
		d.change(ctx, keeping(""))
		isVictim := func(pod observe.Pod) bool { return pod.Node == victim }
		survivors := slices.DeleteFunc(slices.Clone(before), isVictim)
		d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
			g.Expect(status.UpdatedNumberScheduled).To(BeEquivalentTo(len(others)))
			g.Expect(status.NumberAvailable).To(BeEquivalentTo(len(others)))
		})
		expectInPlace(survivors, slices.DeleteFunc(d.pods(ctx), isVictim), 1)
		d.waitForNode(ctx, d.on(ctx, victim).Name, "node "+victim+" is not ready")

		startNode(ctx)
		d.waitSettled(ctx, nodes...)
		Expect(uids(d.pods(ctx))).To(Equal(uids(before)))
		Expect(d.images(ctx)).To(HaveKeyWithValue(victim, nginxLatest))
	})
})
