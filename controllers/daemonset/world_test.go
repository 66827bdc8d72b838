// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package daemonset_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/daemonset"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/stage"
)

// world is a cluster with nodes, and a namespace with a kubelet, a clock that only the spec moves,
// and a reconciler. There is one at a time: it begins with its own nodes.
type world struct {
	ctx       context.Context
	namespace string
	clock     *clocktesting.FakeClock
	// api is what users and kubelet write with.
	api        client.Client
	live       client.Reader
	kubelet    *stage.Kubelet
	manager    *stage.Manager
	recorder   *stage.Recorder
	reconciler *daemonset.Reconciler
	// ids is how many ends of names were given: aaaaa, aaaab.
	ids int
	// set is the set that is reconciled, as the spec last saw it.
	set *appsv1beta1.DaemonSet
}

// maxRounds is how many rounds of reconciler and kubelet a set may take to come
// to rest.
const maxRounds = 150

// newWorld makes a namespace for one spec, and nodes of these names; node-1, node-2 and node-3 if
// there are none.
func newWorld(ctx context.Context, nodes ...string) *world {
	GinkgoHelper()
	w := &world{ctx: context.WithoutCancel(ctx), clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second))}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "daemon-"}}
	Expect(shared.GetClient().Create(ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.kubelet = stage.NewKubelet(w.namespace, w.clock)
	w.startManager(shared)
	for name := range w.nodes() {
		w.removeNode(name)
	}
	if len(nodes) == 0 {
		nodes = []string{"node-1", "node-2", "node-3"}
	}
	for _, name := range nodes {
		w.addNode(name, nil)
	}
	return w
}

// startManager starts a new manager. What it writes is counted from zero.
func (w *world) startManager(view cluster.Cluster) {
	w.api, w.live = view.GetClient(), view.GetAPIReader()
	w.kubelet.API, w.kubelet.Live = w.api, w.live
	w.manager = stage.NewManager(view.GetClient())
	w.recorder = &stage.Recorder{Scheme: view.GetScheme()}
	w.reconciler = daemonset.NewReconciler(w.manager, w.live, w.recorder, w.clock, w.nextID)
	w.reconciler.PullAs(stage.NoPulls())
}

func (w *world) nextID(length int) string {
	id := ""
	for n := w.ids; len(id) < length; n /= 26 {
		id = string(rune('a'+n%26)) + id
	}
	w.ids++
	return id
}

// create creates a set and brings it to rest.
func (w *world) create(b *builders.DaemonSetBuilder) {
	GinkgoHelper()
	w.apply(b)
	w.settle()
}

// apply creates a set. It is the one that is reconciled from now on.
func (w *world) apply(b *builders.DaemonSetBuilder) {
	GinkgoHelper()
	w.set = b.Build()
	w.set.Namespace = w.namespace
	Expect(w.api.Create(w.ctx, w.set)).To(Succeed())
}

// change changes the spec of the set.
func (w *world) change(mutate func(*appsv1beta1.DaemonSet)) {
	GinkgoHelper()
	w.refresh()
	before := w.set.DeepCopy()
	mutate(w.set)
	Expect(w.api.Patch(w.ctx, w.set, client.MergeFrom(before))).To(Succeed())
}

func (w *world) setImage(image string) {
	GinkgoHelper()
	w.change(newImage(image))
}

func newImage(image string) func(*appsv1beta1.DaemonSet) {
	return func(set *appsv1beta1.DaemonSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

// newEnv changes what cannot be changed in place.
func newEnv(set *appsv1beta1.DaemonSet) {
	set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "LEVEL", Value: "debug"}}
}

// refresh reads the set.
func (w *world) refresh() *appsv1beta1.DaemonSet {
	GinkgoHelper()
	Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(w.set), w.set)).To(Succeed())
	return w.set
}

func (w *world) status() appsv1beta1.DaemonSetStatus {
	GinkgoHelper()
	return w.refresh().Status
}

// condition returns a condition of the set, nil if it is not there.
func (w *world) condition(conditionType string) *metav1.Condition {
	GinkgoHelper()
	return meta.FindStatusCondition(w.refresh().Status.Conditions, conditionType)
}

// tryReconcile reconciles the set once.
func (w *world) tryReconcile() (ctrl.Result, error) {
	return w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)})
}

// reconcile reconciles the set once, which must succeed.
func (w *world) reconcile() ctrl.Result {
	GinkgoHelper()
	result, err := w.tryReconcile()
	Expect(err).NotTo(HaveOccurred())
	return result
}

// settle lets reconciler and kubelet take turns, with a second between them, until both have
// nothing to do and nothing is asked to happen later.
func (w *world) settle() {
	GinkgoHelper()
	w.settleWith(func() {})
}

// settleWith is settle with a look at every round.
func (w *world) settleWith(look func()) {
	GinkgoHelper()
	for range maxRounds {
		before := len(w.manager.Writes(""))
		result := w.reconcile()
		look()
		w.clock.Step(time.Second)
		moved := w.kubelet.Sync(w.ctx)
		look()
		if moved || len(w.manager.Writes("")) > before {
			continue
		}
		if result.RequeueAfter == 0 {
			return
		}
		w.clock.Step(result.RequeueAfter)
	}
	Fail(fmt.Sprintf("not at rest after %d rounds: %+v", maxRounds, w.status()))
}

// pods returns the pods of the namespace by name, as the API server has them.
func (w *world) pods() map[string]*corev1.Pod {
	GinkgoHelper()
	list := &corev1.PodList{}
	Expect(w.live.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	pods := map[string]*corev1.Pod{}
	for i := range list.Items {
		pods[list.Items[i].Name] = &list.Items[i]
	}
	return pods
}

// active returns the pods that are not being deleted.
func (w *world) active() map[string]*corev1.Pod {
	GinkgoHelper()
	pods := w.pods()
	maps.DeleteFunc(pods, func(_ string, pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	return pods
}

// on returns the only pod of a node that is not being deleted.
func (w *world) on(node string) *corev1.Pod {
	GinkgoHelper()
	found := slices.DeleteFunc(slices.Collect(maps.Values(w.active())), func(pod *corev1.Pod) bool { return pod.Spec.NodeName != node })
	Expect(found).To(HaveLen(1), "pods on %s", node)
	return found[0]
}

// images returns the images of the pods by node, of those that are not being deleted.
func (w *world) images() map[string]string {
	GinkgoHelper()
	images := map[string]string{}
	for _, pod := range w.active() {
		Expect(images).NotTo(HaveKey(pod.Spec.NodeName), "two pods on a node")
		images[pod.Spec.NodeName] = pod.Spec.Containers[0].Image
	}
	return images
}

// same returns an image for each of some nodes.
func same(image string, nodes ...string) map[string]string {
	images := map[string]string{}
	for _, node := range nodes {
		images[node] = image
	}
	return images
}

// all returns an image for each node that a world has by itself.
func all(image string) map[string]string { return same(image, "node-1", "node-2", "node-3") }

// available is how many pods are ready.
func (w *world) available() int {
	GinkgoHelper()
	ready := 0
	for _, pod := range w.active() {
		if stage.PodConditionStatus(pod, corev1.PodReady) == corev1.ConditionTrue {
			ready++
		}
	}
	return ready
}

// uids returns the UIDs of the pods by node: pods that were changed in place keep theirs.
func (w *world) uids() map[string]types.UID {
	GinkgoHelper()
	uids := map[string]types.UID{}
	for _, pod := range w.active() {
		uids[pod.Spec.NodeName] = pod.UID
	}
	return uids
}

// changePod changes a pod as a user does.
func (w *world) changePod(name string, change func(*corev1.Pod)) {
	GinkgoHelper()
	pod := w.pods()[name]
	before := pod.DeepCopy()
	change(pod)
	Expect(w.api.Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
}

// changePodStatus changes the status of a pod as a kubelet does.
func (w *world) changePodStatus(name string, change func(*corev1.PodStatus)) {
	GinkgoHelper()
	pod := w.pods()[name]
	before := pod.DeepCopy()
	change(&pod.Status)
	Expect(w.api.Status().Patch(w.ctx, pod, client.StrategicMergeFrom(before))).To(Succeed())
}

// revisions returns the revisions of the namespace by name.
func (w *world) revisions() map[string]appsv1.ControllerRevision {
	GinkgoHelper()
	list := &appsv1.ControllerRevisionList{}
	Expect(w.live.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	revisions := map[string]appsv1.ControllerRevision{}
	for _, revision := range list.Items {
		revisions[revision.Name] = revision
	}
	return revisions
}

// expectNoWrites reconciles again and again, also hours later.
func (w *world) expectNoWrites() {
	GinkgoHelper()
	w.manager.Forget()
	for range 3 {
		Expect(w.reconcile()).To(Equal(ctrl.Result{}))
		w.clock.Step(time.Hour)
	}
	Expect(w.manager.Writes("")).To(BeEmpty())
}

// expectSettled checks that the set reports to be done, at one revision, with a pod on each of
// so many nodes.
func (w *world) expectSettled(nodes int32) {
	GinkgoHelper()
	set := w.refresh()
	status := set.Status
	Expect(status.ObservedGeneration).To(Equal(set.Generation))
	Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))
	Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionFalse))
	for what, count := range map[string]int32{
		"desiredNumberScheduled": status.DesiredNumberScheduled, "currentNumberScheduled": status.CurrentNumberScheduled,
		"numberReady": status.NumberReady, "numberAvailable": status.NumberAvailable, "updatedNumberScheduled": status.UpdatedNumberScheduled,
	} {
		Expect(count).To(Equal(nodes), what)
	}
	Expect(status.NumberUnavailable).To(BeZero())
	Expect(status.NumberMisscheduled).To(BeZero())
	Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
	Expect(status.DaemonSetHash).To(Equal(status.UpdateRevision))
	Expect(status.Blockers).To(BeEmpty())
	Expect(w.pods()).To(HaveLen(int(nodes)))
}

// reference is the set that most specs start from.
func reference() *builders.DaemonSetBuilder {
	return builders.DaemonSet("", "sample", "nginx:alpine")
}
