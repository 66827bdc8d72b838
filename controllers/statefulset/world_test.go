// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset_test

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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/statefulset"
	"github.com/insitu-dev/insitu/test/builders"
	"github.com/insitu-dev/insitu/test/stage"
)

// world is a namespace with a kubelet, a clock that only the spec moves, and a
// reconciler.
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
	reconciler *statefulset.Reconciler
	// set is the set that is reconciled, as the spec last saw it.
	set *appsv1beta1.StatefulSet
}

// maxRounds is how many rounds of reconciler and kubelet a set may take to come
// to rest.
const maxRounds = 150

// newWorld makes a namespace for one spec. When the spec ends, the status of
// each set in it must make sense.
func newWorld(ctx context.Context) *world {
	GinkgoHelper()
	return newWorldOf(ctx, shared)
}

// newWorldOf is newWorld on the API server of a view.
func newWorldOf(ctx context.Context, view cluster.Cluster) *world {
	GinkgoHelper()
	w := &world{ctx: context.WithoutCancel(ctx), clock: clocktesting.NewFakeClock(time.Now().Truncate(time.Second))}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "sts-"}}
	Expect(view.GetClient().Create(ctx, namespace)).To(Succeed())
	w.namespace = namespace.Name
	w.kubelet = stage.NewKubelet(w.namespace, w.clock)
	w.startManager(view)
	DeferCleanup(func() {
		if w.set != nil && w.exists(w.set) {
			w.expectStatusInvariants()
		}
	})
	return w
}

// startManager starts a new manager. What it writes is counted from zero. Users
// and kubelet write through the same view from now on, so that it never lags
// behind them.
func (w *world) startManager(view cluster.Cluster) {
	w.api, w.live = view.GetClient(), view.GetAPIReader()
	w.kubelet.API, w.kubelet.Live = w.api, w.live
	w.manager = stage.NewManager(view.GetClient())
	w.recorder = &stage.Recorder{Scheme: view.GetScheme()}
	w.reconciler = statefulset.NewReconciler(w.manager, w.live, w.recorder, w.clock)
	w.reconciler.PullAs(stage.NoPulls())
}

// create creates a set and brings it to rest.
func (w *world) create(b *builders.StatefulSetBuilder) {
	GinkgoHelper()
	w.apply(b.Build())
	w.settle()
}

// createUngated creates a set whose pods have no readiness gate, as its template lists
// none, and they are made before the set is one that is updated in place.
func (w *world) createUngated(b *builders.StatefulSetBuilder) {
	GinkgoHelper()
	w.create(b.Ungated().Policy(appsv1beta1.RecreatePodUpdateStrategyType))
	w.change(func(set *appsv1beta1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate.PodUpdatePolicy = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
	})
	w.settle()
}

// apply creates a set. It is the one that is reconciled from now on.
func (w *world) apply(set *appsv1beta1.StatefulSet) {
	GinkgoHelper()
	set.Namespace = w.namespace
	Expect(w.api.Create(w.ctx, set)).To(Succeed())
	w.set = set
}

// change changes the spec of the set.
func (w *world) change(mutate func(*appsv1beta1.StatefulSet)) {
	GinkgoHelper()
	w.refresh()
	before := w.set.DeepCopy()
	mutate(w.set)
	Expect(w.api.Patch(w.ctx, w.set, client.MergeFrom(before))).To(Succeed())
}

func (w *world) setImage(image string) {
	GinkgoHelper()
	w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = image })
}

func (w *world) scale(replicas int32) {
	GinkgoHelper()
	w.change(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = &replicas })
}

// refresh reads the set.
func (w *world) refresh() *appsv1beta1.StatefulSet {
	GinkgoHelper()
	Expect(w.api.Get(w.ctx, client.ObjectKeyFromObject(w.set), w.set)).To(Succeed())
	return w.set
}

func (w *world) status() appsv1beta1.StatefulSetStatus {
	GinkgoHelper()
	return w.refresh().Status
}

func (w *world) exists(obj client.Object) bool {
	GinkgoHelper()
	err := w.live.Get(w.ctx, client.ObjectKeyFromObject(obj), obj.DeepCopyObject().(client.Object))
	Expect(client.IgnoreNotFound(err)).To(Succeed())
	return err == nil
}

// tryReconcile reconciles the set once.
func (w *world) tryReconcile() (ctrl.Result, error) {
	return w.reconciler.Reconcile(w.ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.set)})
}

// reconcile reconciles the set once, which must succeed and leave a status that
// makes sense.
func (w *world) reconcile() ctrl.Result {
	GinkgoHelper()
	result, err := w.tryReconcile()
	Expect(err).NotTo(HaveOccurred())
	w.expectStatusInvariants()
	return result
}

// reconcileFailing reconciles the set once, of which some part must fail: it must
// ask for another try, and leave a status that makes sense.
func (w *world) reconcileFailing() {
	GinkgoHelper()
	result, err := w.tryReconcile()
	Expect(err != nil || result.RequeueAfter > 0).To(BeTrue(), "nothing asks for another try")
	w.expectStatusInvariants()
}

// recover reconciles until no failure is reported any more: the API server takes
// a moment to notice that a hindrance is gone.
func (w *world) recover() {
	GinkgoHelper()
	Eventually(func() []string {
		_, _ = w.tryReconcile()
		return conditionTypes(w.refresh())
	}).Should(HaveLen(3))
}

// settle lets reconciler and kubelet take turns, with a second between them,
// until both have nothing to do and nothing is asked to happen later.
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

func (w *world) pod(name string) *corev1.Pod {
	GinkgoHelper()
	pod, ok := w.pods()[name]
	Expect(ok).To(BeTrue(), "pod %s is not there", name)
	return pod
}

func (w *world) podNames() []string {
	GinkgoHelper()
	return slices.Sorted(maps.Keys(w.pods()))
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

// images returns the images of the pods by name.
func (w *world) images() map[string]string {
	GinkgoHelper()
	images := map[string]string{}
	for name, pod := range w.pods() {
		images[name] = pod.Spec.Containers[0].Image
	}
	return images
}

// restarts returns how often the containers of the pods were restarted, by name.
func (w *world) restarts() map[string]int32 {
	GinkgoHelper()
	restarts := map[string]int32{}
	for name, pod := range w.pods() {
		for _, status := range pod.Status.ContainerStatuses {
			restarts[name] += status.RestartCount
		}
	}
	return restarts
}

// deletePod deletes a pod as a user does.
func (w *world) deletePod(name string) {
	GinkgoHelper()
	Expect(w.api.Delete(w.ctx, w.pod(name))).To(Succeed())
}

// label sets a label of a pod, as a user does.
func (w *world) label(pod, key, value string) {
	GinkgoHelper()
	w.relabel(pod, func(labels map[string]string) { labels[key] = value })
}

// unlabel removes a label of a pod, as a user does.
func (w *world) unlabel(pod, key string) {
	GinkgoHelper()
	w.relabel(pod, func(labels map[string]string) { delete(labels, key) })
}

func (w *world) relabel(pod string, change func(map[string]string)) {
	GinkgoHelper()
	live := w.pod(pod)
	before := live.DeepCopy()
	change(live.Labels)
	Expect(w.api.Patch(w.ctx, live, client.MergeFrom(before))).To(Succeed())
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
