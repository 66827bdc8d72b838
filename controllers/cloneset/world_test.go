// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cloneset_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/cloneset"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/stage"
)

// world is a namespace with a kubelet, a garbage collector for claims, a clock
// that only the spec moves, and a reconciler.
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
	reconciler *cloneset.Reconciler
	// ids is how many instance IDs were given: aaaaa, aaaab.
	ids int
	// set is the set that is reconciled, as the spec last saw it.
	set *appsv1beta1.CloneSet
}

// maxRounds is how many rounds of reconciler and kubelet a set may take to come
// to rest.
const maxRounds = 150

// newWorld makes a namespace for one spec.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	w := &world{ctx: context.WithoutCancel(ctx), clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second))}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clone-"}}
	Expect(shared.GetClient().Create(ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.kubelet = stage.NewKubelet(w.namespace, w.clock)
	w.startManager(shared)
	return w
}

// startManager starts a new manager. What it writes is counted from zero.
func (w *world) startManager(view cluster.Cluster) {
	w.api, w.live = view.GetClient(), view.GetAPIReader()
	w.kubelet.API, w.kubelet.Live = w.api, w.live
	w.manager = stage.NewManager(view.GetClient())
	w.recorder = &stage.Recorder{Scheme: view.GetScheme()}
	w.reconciler = cloneset.NewReconciler(w.manager, w.live, w.recorder, w.clock, w.nextID)
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
func (w *world) create(b *builders.CloneSetBuilder) {
	GinkgoHelper()
	w.apply(b)
	w.settle()
}

// apply creates a set. It is the one that is reconciled from now on.
func (w *world) apply(b *builders.CloneSetBuilder) {
	GinkgoHelper()
	w.set = b.Build()
	w.set.Namespace = w.namespace
	Expect(w.api.Create(w.ctx, w.set)).To(Succeed())
}

// change changes the spec of the set.
func (w *world) change(mutate func(*appsv1beta1.CloneSet)) {
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

func newImage(image string) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) { set.Spec.Template.Spec.Containers[0].Image = image }
}

func (w *world) scale(replicas int32) {
	GinkgoHelper()
	w.change(func(set *appsv1beta1.CloneSet) { set.Spec.Replicas = &replicas })
}

// refresh reads the set.
func (w *world) refresh() *appsv1beta1.CloneSet {
	GinkgoHelper()
	Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(w.set), w.set)).To(Succeed())
	return w.set
}

func (w *world) status() appsv1beta1.CloneSetStatus {
	GinkgoHelper()
	return w.refresh().Status
}

// condition returns a condition of the set, nil if it is not there.
func (w *world) condition(conditionType string) *appsv1beta1.CloneSetCondition {
	GinkgoHelper()
	for _, condition := range w.refresh().Status.Conditions {
		if condition.Type == conditionType {
			return &condition
		}
	}
	return nil
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

// settle lets reconciler, kubelet and garbage collector take turns, with a second
// between them, until all have nothing to do and nothing is asked to happen later.
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
		moved = w.collect() || moved
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

// collect deletes the claims none of whose owners exists, as the garbage collector
// does, once no pod uses them, and reports whether there was one.
func (w *world) collect() bool {
	GinkgoHelper()
	exists := map[types.UID]bool{w.refresh().UID: true}
	used := map[string]bool{}
	for _, pod := range w.pods() {
		exists[pod.UID] = true
		for _, volume := range pod.Spec.Volumes {
			if volume.PersistentVolumeClaim != nil {
				used[volume.PersistentVolumeClaim.ClaimName] = true
			}
		}
	}
	moved := false
	for _, claim := range w.claims() {
		orphaned := len(claim.OwnerReferences) > 0 &&
			!slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return exists[o.UID] })
		if !orphaned || used[claim.Name] {
			continue
		}
		moved = true
		Expect(client.IgnoreNotFound(w.api.Delete(w.ctx, claim))).To(Succeed())
		before := claim.DeepCopy()
		claim.Finalizers = nil
		Expect(client.IgnoreNotFound(w.api.Patch(w.ctx, claim, client.MergeFrom(before)))).To(Succeed())
	}
	return moved
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

func (w *world) podNames() []string {
	GinkgoHelper()
	return slices.Sorted(maps.Keys(w.pods()))
}

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

// uids returns the UIDs of the pods by name: pods that were changed in place
// keep theirs.
func (w *world) uids() map[string]types.UID {
	GinkgoHelper()
	uids := map[string]types.UID{}
	for name, pod := range w.pods() {
		uids[name] = pod.UID
	}
	return uids
}

// images returns how many pods have an image, by image.
func (w *world) images() map[string]int {
	GinkgoHelper()
	images := map[string]int{}
	for _, pod := range w.active() {
		images[pod.Spec.Containers[0].Image]++
	}
	return images
}

// claims returns the claims of the namespace by name.
func (w *world) claims() map[string]*corev1.PersistentVolumeClaim {
	GinkgoHelper()
	list := &corev1.PersistentVolumeClaimList{}
	Expect(w.live.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i := range list.Items {
		claims[list.Items[i].Name] = &list.Items[i]
	}
	return claims
}

// expectClaims checks that there is a claim for each pod and no other, and that it
// is the set's.
func (w *world) expectClaims() {
	GinkgoHelper()
	var names []string
	for _, claim := range w.claims() {
		names = append(names, strings.TrimPrefix(claim.Name, "data-"))
		Expect(metav1.IsControlledBy(claim, w.set)).To(BeTrue(), "claim %s: %v", claim.Name, claim.OwnerReferences)
	}
	Expect(names).To(ConsistOf(w.podNames()))
}

// expectEntrusted checks that so many pods are being deleted, and that their claims
// are theirs.
func (w *world) expectEntrusted(count int) {
	GinkgoHelper()
	entrusted := 0
	for name, pod := range w.pods() {
		if pod.DeletionTimestamp != nil {
			entrusted++
			Expect(metav1.IsControlledBy(w.claims()["data-"+name], pod)).To(BeTrue(), "claim of %s", name)
		}
	}
	Expect(entrusted).To(Equal(count))
}

// deletePod deletes a pod as a user does.
func (w *world) deletePod(name string) {
	GinkgoHelper()
	Expect(w.api.Delete(w.ctx, w.pods()[name])).To(Succeed())
}

// changePod changes a pod as a user does.
func (w *world) changePod(name string, change func(*corev1.Pod)) {
	GinkgoHelper()
	pod := w.pods()[name]
	before := pod.DeepCopy()
	change(pod)
	Expect(w.api.Patch(w.ctx, pod, client.MergeFrom(before))).To(Succeed())
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

// expectSettled checks that the set reports to be done, at one revision, with a
// number of pods.
func (w *world) expectSettled(replicas int32) {
	GinkgoHelper()
	set := w.refresh()
	status := set.Status
	Expect(status.ObservedGeneration).To(Equal(set.Generation))
	Expect(w.condition(appsv1beta1.ConditionReady)).To(HaveField("Status", metav1.ConditionTrue))
	Expect(w.condition(appsv1beta1.ConditionStalled)).To(HaveField("Status", metav1.ConditionFalse))
	for what, count := range map[string]int32{
		"replicas": status.Replicas, "readyReplicas": status.ReadyReplicas, "availableReplicas": status.AvailableReplicas,
		"updatedReplicas": status.UpdatedReplicas, "updatedReadyReplicas": status.UpdatedReadyReplicas,
		"updatedAvailableReplicas": status.UpdatedAvailableReplicas,
	} {
		Expect(count).To(Equal(replicas), what)
	}
	Expect(status.CurrentRevision).To(Equal(status.UpdateRevision))
	Expect(status.Blockers).To(BeEmpty())
	Expect(w.pods()).To(HaveLen(int(replicas)))
}

// partitioned keeps a part of the pods at the old revision.
func partitioned(value string) func(*appsv1beta1.CloneSet) {
	return func(set *appsv1beta1.CloneSet) {
		set.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(intstr.Parse(value))
	}
}

// reference is the set that most specs start from.
func reference() *builders.CloneSetBuilder {
	return builders.CloneSet("", "sample", "nginx:alpine").Replicas(4)
}
