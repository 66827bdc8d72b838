// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/commands"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/observe"
	"github.com/insitu-dev/insitu/test/short"
)

// daemonEdit changes a DaemonSet.
type daemonEdit func(*appsv1beta1.DaemonSet)

// newDaemonSet returns a set "sample" that changes its pods in place, on one node at a time.
func newDaemonSet(namespace, image string, edits ...daemonEdit) *appsv1beta1.DaemonSet {
	set := builders.DaemonSet(namespace, "sample", image).Build()
	for _, edit := range edits {
		edit(set)
	}
	return set
}

// ofImage gives the container another image.
func ofImage(image string) daemonEdit {
	return func(set *appsv1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

// keeping sets the partition: a number of nodes, or a percentage. It is empty for none.
func keeping(partition string) daemonEdit {
	return func(set *appsv1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = nil
		if partition != "" {
			set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.Parse(partition))
		}
	}
}

// canaries lets the pods of the nodes with a label be updated; those of all if it is empty.
func canaries(label string) daemonEdit {
	return func(set *appsv1beta1.DaemonSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Selector = nil
		if label != "" {
			set.Spec.UpdateStrategy.RollingUpdate.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{label: "yes"}}
		}
	}
}

// onNodesWith has the pods run on the nodes with a label.
func onNodesWith(label string) daemonEdit {
	return func(set *appsv1beta1.DaemonSet) {
		set.Spec.Template.Spec.NodeSelector = map[string]string{label: "yes"}
	}
}

// daemons is a DaemonSet on real kubelets.
type daemons struct {
	set *appsv1beta1.DaemonSet
}

// newDaemons creates a DaemonSet and waits until its pods are available on the nodes.
func newDaemons(ctx context.Context, set *appsv1beta1.DaemonSet, nodes ...string) *daemons {
	GinkgoHelper()
	d := &daemons{set: set}
	Expect(api.Create(ctx, d.set)).To(Succeed())
	d.waitSettled(ctx, nodes...)
	return d
}

func (d *daemons) change(ctx context.Context, edits ...daemonEdit) {
	GinkgoHelper()
	Expect(api.Get(ctx, client.ObjectKeyFromObject(d.set), d.set)).To(Succeed())
	before := d.set.DeepCopy()
	for _, edit := range edits {
		edit(d.set)
	}
	Expect(api.Patch(ctx, d.set, client.MergeFrom(before))).To(Succeed())
}

func (d *daemons) pods(ctx context.Context) []observe.Pod {
	GinkgoHelper()
	found, err := observe.Pods(ctx, kube, d.set.Namespace, "app="+d.set.Name)
	Expect(err).NotTo(HaveOccurred())
	return found
}

// on returns the pod on a node, of which there has to be one.
func (d *daemons) on(ctx context.Context, node string) *corev1.Pod {
	GinkgoHelper()
	found := slices.DeleteFunc(podsIn(ctx, d.set.Namespace), func(pod corev1.Pod) bool { return pod.Spec.NodeName != node })
	Expect(found).To(HaveLen(1), "pods on node %s", node)
	return &found[0]
}

// images returns what the pods are to run by their specs, by node.
func (d *daemons) images(ctx context.Context) map[string]string {
	GinkgoHelper()
	found := map[string]string{}
	for _, pod := range d.pods(ctx) {
		found[pod.Node] = pod.Image
	}
	return found
}

// eventually reads the set until what the operator says of its present spec is as wanted.
func (d *daemons) eventually(ctx context.Context, wanted func(Gomega, appsv1beta1.DaemonSetStatus)) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		g.Expect(api.Get(ctx, client.ObjectKeyFromObject(d.set), d.set)).To(Succeed())
		g.Expect(d.set.Status.ObservedGeneration).To(Equal(d.set.Generation))
		wanted(g, d.set.Status)
	}).Should(Succeed())
}

// waitSettled waits until there is one pod on each of the nodes and on no other, all at the
// present template and available.
func (d *daemons) waitSettled(ctx context.Context, nodes ...string) {
	GinkgoHelper()
	d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
		g.Expect(status.DesiredNumberScheduled).To(BeEquivalentTo(len(nodes)))
		g.Expect(status.UpdatedNumberScheduled).To(BeEquivalentTo(len(nodes)), "blockers: %+v", status.Blockers)
		g.Expect(status.NumberAvailable).To(BeEquivalentTo(len(nodes)), "blockers: %+v", status.Blockers)
		g.Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
		var found []string
		for _, pod := range d.pods(ctx) {
			g.Expect(pod.Ready).To(BeTrue(), pod.Name)
			found = append(found, pod.Node)
		}
		g.Expect(found).To(ConsistOf(nodes))
	})
}

// waitKept waits until the rollout has come as far as partition and selector let it: so many
// nodes are updated, and all pods are available.
func (d *daemons) waitKept(ctx context.Context, updated int) {
	GinkgoHelper()
	d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
		g.Expect(status.UpdatedNumberScheduled).To(BeEquivalentTo(updated), "blockers: %+v", status.Blockers)
		g.Expect(meta.FindStatusCondition(status.Conditions, appsv1beta1.ConditionReady)).To(HaveValue(And(
			HaveField("Status", metav1.ConditionTrue), HaveField("Reason", appsv1beta1.ReasonPartitionReached))))
	})
}

// waitHeld waits until a pod is in a lifecycle state.
func (d *daemons) waitHeld(ctx context.Context, node string, state appsv1beta1.LifecycleStateType) *corev1.Pod {
	GinkgoHelper()
	var pod *corev1.Pod
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		pod = d.on(ctx, node)
		g.Expect(stateOf(pod)).To(Equal(state))
	}).Should(Succeed())
	return pod
}

// expectServing looks at the pods until done is content. It fails if more nodes than unavailable
// have no ready pod at a time, or more pods than surge run beside those of the nodes.
func (d *daemons) expectServing(ctx context.Context, nodes []string, unavailable, surge int, done func(Gomega, []observe.Pod)) {
	GinkgoHelper()
	Eventually(ctx, func(g Gomega, ctx context.Context) {
		found := d.pods(ctx)
		serving, staying := sets.New[string](), 0
		for _, pod := range found {
			if pod.Ready {
				serving.Insert(pod.Node)
			}
			if !pod.Terminating {
				staying++
			}
		}
		if serving.Len() < len(nodes)-unavailable {
			StopTrying("too many nodes have no ready pod").Attach("pods", found).Now()
		}
		if staying > len(nodes)+surge {
			StopTrying("too many pods run beside others").Attach("pods", found).Now()
		}
		done(g, found)
	}).WithPolling(50 * time.Millisecond).Should(Succeed())
}

// allOther wants one pod on each node, none of them from before, all of an image.
func allOther(before []observe.Pod, image string) func(Gomega, []observe.Pod) {
	gone := sets.New(uids(before)...)
	return func(g Gomega, found []observe.Pod) {
		g.Expect(found).To(HaveLen(len(before)))
		g.Expect(found).To(HaveEach(HaveField("Image", image)))
		g.Expect(found).To(HaveEach(HaveField("UID", Satisfy(func(uid types.UID) bool { return !gone.Has(uid) }))))
	}
}

var _ = Describe("A DaemonSet", func() {
	var namespace string
	var nodes []string
	BeforeEach(func(ctx context.Context) { namespace, nodes = newNamespace(ctx), labNodes(ctx) })

	It("changes canary nodes in place, then a percentage by name, then all", short.Spec, func(ctx context.Context) {
		canary, others := nodes[0], nodes[1:]
		label := labelOf(namespace)
		labelNode(ctx, canary, label)
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine, canaries(label)), nodes...)
		before := d.pods(ctx)

		d.change(ctx, ofImage(nginxLatest))
		d.waitKept(ctx, 1)
		wanted := map[string]string{canary: nginxLatest}
		for _, node := range others {
			wanted[node] = nginxAlpine
		}
		Expect(d.images(ctx)).To(Equal(wanted))
		d.change(ctx, canaries(""))
		d.waitSettled(ctx, nodes...)
		expectInPlace(before, d.pods(ctx), 1)

		d.change(ctx, ofImage(nginxAlpine), keeping("50%"))
		updated := len(nodes) - len(nodes)/2
		d.waitKept(ctx, updated)
		for i, node := range nodes {
			wanted[node] = nginxLatest
			if i >= len(nodes)-updated {
				wanted[node] = nginxAlpine
			}
		}
		Expect(d.images(ctx)).To(Equal(wanted), "the nodes with the highest names go first")
		output, code := plugin(ctx, namespace, "promote", "daemonset.apps.kruise.io/sample", "--by", "50%")
		Expect(code).To(Equal(commands.ExitOK), output)
		d.waitSettled(ctx, nodes...)
		expectInPlace(before, d.pods(ctx), 2)
		Expect(d.set.Status.InPlaceUpdated).To(BeEquivalentTo(len(nodes)))
		Expect(d.set.Status.Recreated).To(BeZero())
	})

	It("surges as v1alpha1 says it: no node is without a ready pod", func(ctx context.Context) {
		output, err := kubectl(ctx, "apply", "-n", namespace, "-f", filepath.Join("testdata", "daemonset-surging-v1alpha1.yaml"))
		Expect(err).NotTo(HaveOccurred(), output)
		d := &daemons{set: &appsv1beta1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sample"}}}
		d.waitSettled(ctx, nodes...)
		before := d.pods(ctx)
		d.change(ctx, ofImage(nginxLatest))
		d.expectServing(ctx, nodes, 0, 1, allOther(before, nginxLatest))
		d.waitSettled(ctx, nodes...)
		Expect(d.set.Status.Recreated).To(BeEquivalentTo(len(nodes)))
	})

	It("recreates pods whose environment changes, on one node at a time", func(ctx context.Context) {
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine), nodes...)
		before := d.pods(ctx)
		d.change(ctx, func(set *appsv1beta1.DaemonSet) {
			set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
		})
		d.expectServing(ctx, nodes, 1, 0, allOther(before, nginxAlpine))
		d.waitSettled(ctx, nodes...)
		Expect(d.set.Status.InPlaceUpdated).To(BeZero())
		Expect(d.set.Status.Recreated).To(BeEquivalentTo(len(nodes)))
	})

	It("resizes its pods without a restart", func(ctx context.Context) {
		toSize := func(s size) daemonEdit {
			return func(set *appsv1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Resources = s.resources() }
		}
		d := newDaemons(ctx, newDaemonSet(namespace, sleeperV1, toSize(small)), nodes...)
		before, seen := identities(ctx, namespace), watchPods(ctx, namespace)
		d.change(ctx, toSize(large))
		d.waitSettled(ctx, nodes...)
		expectInService(seen())
		Expect(identities(ctx, namespace)).To(Equal(before))
		for _, node := range nodes {
			expectSize(d.on(ctx, node), large)
		}
	})

	It("stops at an image that does not exist, and undo brings the pod back in place", func(ctx context.Context) {
		d := newDaemons(ctx, newDaemonSet(namespace, nginxAlpine, func(set *appsv1beta1.DaemonSet) {
			set.Spec.UpdateStrategy.RollingUpdate.InPlaceUpdateStrategy = unpulled()
		}), nodes...)
		before := d.pods(ctx)
		last := nodes[len(nodes)-1]
		d.change(ctx, ofImage(nginxMissing))
		stuck := d.on(ctx, last).Name
		d.eventually(ctx, func(g Gomega, status appsv1beta1.DaemonSetStatus) {
			g.Expect(status.Blockers).To(ContainElement(And(
				HaveField("Pod", stuck), HaveField("Reason", Or(Equal("ImagePullBackOff"), Equal("ErrImagePull"))))))
			g.Expect(status.NumberAvailable).To(BeEquivalentTo(len(nodes) - 1))
		})
		isStuck := func(pod observe.Pod) bool { return pod.Node == last }
		expectInPlace(slices.DeleteFunc(slices.Clone(before), isStuck), slices.DeleteFunc(d.pods(ctx), isStuck), 0)

		output, code := plugin(ctx, namespace, "undo", "daemonset.apps.kruise.io/sample")
		Expect(code).To(Equal(commands.ExitOK), output)
		d.waitSettled(ctx, nodes...)
		Expect(uids(d.pods(ctx))).To(Equal(uids(before)))
		Expect(d.pods(ctx)).To(HaveEach(HaveField("Image", nginxAlpine)))
	})
})
