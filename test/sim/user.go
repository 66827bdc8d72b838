// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// disturbance is something that is not the operator's doing.
type disturbance struct {
	name string
	do   func(*World)
	// weight is how likely it is among the others.
	weight int
}

// disturbances are what users, containers, machines and other programs do. The
// first does nothing.
var disturbances = []disturbance{
	{"nothing", func(*World) {}, 1},
	{"revision", func(w *World) { w.ask(pick(w.choices, w.settings.revisions())) }, 6},
	{"previous revision", func(w *World) { w.ask(w.previous) }, 4},
	{"policy", (*World).changePolicy, 1},
	{"paused", (*World).togglePause, 2},
	{"OnDelete", (*World).toggleOnDelete, 1},
	{"partition", (*World).changePartition, 3},
	{"budget", (*World).changeBudget, 1},
	{"scale", (*World).scale, 3},
	{"pod deleted", (*World).deletePod, 3},
	{"pod to be deleted", (*World).askForDeletion, 2},
	{"pod taken out", (*World).takeOut, 1},
	{"pod evicted", (*World).evictPod, 1},
	{"container ends", (*World).crashContainer, 4},
	{"kubelet silent", (*World).silenceKubelet, 3},
	{"node gone", (*World).killNode, 1},
	{"node back", (*World).bringBackNode, 2},
	{"pod forced away", (*World).forcePod, 1},
	{"update refused", (*World).togglePolicy, 1},
	{"adopted", (*World).orphan, 1},
	{"operator killed", (*World).killManager, 2},
	{"lifecycle", (*World).changeLifecycle, 1},
	{"hook silent", (*World).silenceHook, 2},
	{"hook at the wrong moment", (*World).hookAtWrongMoment, 3},
	{"kept out by others", (*World).keepOut, 1},
	{"drain policy", (*World).toggleDrainPolicy, 1},
	{"drained by another", (*World).drainElsewhere, 1},
	{"label taken off", (*World).takeLabelOff, 1},
	{"podsToDelete", (*World).nameForDeletion, 2},
	{"surge", (*World).changeSurge, 2},
}

// disturb does one of them.
func (w *World) disturb() {
	total, possible := 0, w.possibleDisturbances()
	for _, d := range possible {
		total += d.weight
	}
	at := w.choices.intN(total)
	for _, d := range possible {
		if at -= d.weight; at < 0 {
			w.coverage.event(d.name, w)
			d.do(w)
			return
		}
	}
}

func (w *World) changeSet(change func(*appsv1beta1.StatefulSet)) {
	kind := w.settings.kind()
	mutateAt(w.server, w.setKey(), func(set client.Object) {
		view := kind.view(set)
		change(view)
		kind.put(view, set)
	})
}

func (w *World) rolling(change func(*appsv1beta1.RollingUpdateStatefulSetStrategy)) {
	w.changeSet(func(set *appsv1beta1.StatefulSet) {
		if set.Spec.UpdateStrategy.RollingUpdate != nil {
			change(set.Spec.UpdateStrategy.RollingUpdate)
		}
	})
}

// ask makes a revision the one that the user wants.
func (w *World) ask(r revision) {
	w.say("user: revision %s", r.name)
	if r.name != w.wish.name {
		w.previous = w.wish
	}
	w.wish = r
	w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Template = w.settings.template(r) })
}

func (w *World) changePolicy() {
	policy := pick(w.choices, []appsv1beta1.PodUpdateStrategyType{
		appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType, appsv1beta1.InPlaceOnlyPodUpdateStrategyType, appsv1beta1.RecreatePodUpdateStrategyType,
	})
	w.say("user: podUpdatePolicy %s", policy)
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.PodUpdatePolicy = policy })
}

func (w *World) togglePause() {
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) {
		r.Paused = !r.Paused
		w.say("user: paused %t", r.Paused)
	})
}

func (w *World) toggleOnDelete() {
	w.changeSet(func(set *appsv1beta1.StatefulSet) {
		strategy := &set.Spec.UpdateStrategy
		if strategy.Type == appsv1.OnDeleteStatefulSetStrategyType {
			*strategy = w.settings.set(w.wish).Spec.UpdateStrategy
		} else {
			*strategy = appsv1beta1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		}
		w.say("user: updateStrategy %s", strategy.Type)
	})
}

func (w *World) changePartition() {
	partition := w.choices.intN(w.settings.replicas + 1)
	w.say("user: partition %d", partition)
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) { r.Partition = ptr.To(int32(partition)) })
}

func (w *World) changeBudget() {
	if w.settings.ordered {
		return
	}
	budget := 1 + w.choices.intN(w.settings.replicas)
	w.say("user: maxUnavailable %d", budget)
	w.rolling(func(r *appsv1beta1.RollingUpdateStatefulSetStrategy) {
		r.MaxUnavailable = ptr.To(intstr.FromInt(budget))
	})
}

func (w *World) scale() {
	replicas := w.choices.intN(w.settings.replicas + 3)
	w.say("user: replicas %d", replicas)
	w.changeSet(func(set *appsv1beta1.StatefulSet) { set.Spec.Replicas = ptr.To(int32(replicas)) })
}

// anyPod returns one of the pods, to do something to it; nil if there is none.
// If it is out of service now, that is no longer the operator's doing.
func (w *World) anyPod() *corev1.Pod {
	pods := all[*corev1.Pod](w.server)
	if len(pods) == 0 {
		return nil
	}
	name := pick(w.choices, slices.Sorted(maps.Keys(pods)))
	w.law.disturbed.Delete(w.law.placeOf(pods[name]))
	return pods[name]
}

func (w *World) deletePod() {
	if pod := w.anyPod(); pod != nil {
		w.say("user: deletes %s", pod.Name)
		_ = w.server.delete(objectKey{"Pod", pod.Name}, nil) // it is there: it was just seen
		if w.native != nil {
			w.native.law.askedAt = w.clock.Now()
		}
	}
}

// askForDeletion labels a pod, to be deleted within the budget.
func (w *World) askForDeletion() {
	if pod := w.anyPod(); pod != nil {
		w.say("user: labels %s, to be deleted", pod.Name)
		mutate(w.server, pod.Name, func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, appsv1beta1.SpecifiedDeleteKey, "") })
	}
}

// takeOut takes a pod out of the set, or gives back one that is out.
func (w *World) takeOut() {
	pod := w.anyPod()
	if pod == nil {
		return
	}
	mutate(w.server, pod.Name, func(pod *corev1.Pod) {
		if _, is := pod.Labels["app"]; is {
			w.say("user: takes %s out of the set", pod.Name)
			delete(pod.Labels, "app")
		} else {
			w.say("user: gives %s back", pod.Name)
			metav1.SetMetaDataLabel(&pod.ObjectMeta, "app", setName)
		}
	})
}

// giveBack gives back all pods that are out of the set.
func (w *World) giveBack() {
	for _, name := range slices.Sorted(maps.Keys(w.podsOfSet())) {
		mutate(w.server, name, func(pod *corev1.Pod) { metav1.SetMetaDataLabel(&pod.ObjectMeta, "app", setName) })
	}
}

// evictPod lets a pod fail, as the kubelet does under pressure.
func (w *World) evictPod() {
	if pod := w.anyPod(); pod != nil && pod.DeletionTimestamp == nil {
		w.say("kubelet: evicts %s", pod.Name)
		mutate(w.server, pod.Name, func(pod *corev1.Pod) {
			pod.Status.Phase = corev1.PodFailed
			setPodCondition(pod, corev1.PodReady, false, w.clock.Now())
		})
	}
}

func (w *World) forcePod() {
	if pod := w.anyPod(); pod != nil && pod.DeletionTimestamp != nil {
		w.say("user: forces %s away", pod.Name)
		w.server.finish(objectKey{"Pod", pod.Name})
	}
}

func (w *World) crashContainer() {
	pod := w.anyPod()
	if pod == nil || pod.DeletionTimestamp != nil || w.worker(pod) == nil || w.node(pod).isDead() {
		return
	}
	w.worker(pod).crash(pod.Spec.Containers[w.choices.intN(len(pod.Spec.Containers))].Name)
}

func (w *World) silenceKubelet() {
	node := pick(w.choices, w.nodes)
	silence := w.choices.seconds(45)
	if w.settings.oldKubelets {
		silence = min(silence, patience)
	}
	w.say("kubelet: %s says nothing for %s", node.node, silence)
	node.silentUntil = w.clock.Now().Add(silence)
}

// patience is how long a kubelet may be silent that reports no observed
// generation: whether it has acted can only be told by time, see inplace.Observe.
const patience = 10 * time.Second

// killNode lets a node die, unless the other one is dead.
func (w *World) killNode() {
	node := pick(w.choices, w.nodes)
	if w.settings.oldKubelets || slices.ContainsFunc(w.nodes, func(k *kubelet) bool { return k.isDead() && w.isRegistered(k) }) {
		return
	}
	w.say("node %s is gone", node.node)
	node.deadSince = w.clock.Now()
}

func (w *World) bringBackNode() {
	for _, node := range w.nodes {
		if node.isDead() && w.isRegistered(node) {
			w.say("node %s is back", node.node)
			node.rebooted()
		}
	}
}

// togglePolicy lets the server refuse an image, or no more.
func (w *World) togglePolicy() {
	if w.server.admit != nil {
		w.say("admission: refuses nothing any more")
		w.server.admit = nil
		return
	}
	w.say("admission: refuses %s", bImage)
	w.server.admit = func(_, after *corev1.Pod) error {
		for _, c := range after.Spec.Containers {
			if isImage(c.Image, bImage) {
				return apierrors.NewForbidden(resourceOf("Pod"), after.Name, errImage)
			}
		}
		return nil
	}
}

// orphan deletes the set and leaves its pods, and makes it again.
func (w *World) orphan() {
	set := w.set()
	if set == nil || w.isEnding() {
		return
	}
	w.say("user: deletes the set with --cascade=orphan, and makes it again")
	for _, key := range w.server.keys() {
		w.server.disown(key, set.UID)
	}
	again := w.server.objects[w.setKey()].DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	w.server.remove(w.setKey())
	if err := w.server.create(again); err != nil {
		w.violate("make the set again: %w", err)
	}
}

func (w *World) killManager() {
	if w.manager.client.dead {
		return
	}
	w.say("the manager is killed")
	w.manager.client.dead = true
	w.manager.startsAt = w.clock.Now().Add(time.Second + w.choices.seconds(20))
}

// node returns the kubelet of a pod that is bound.
func (w *World) node(pod *corev1.Pod) *kubelet {
	for _, node := range w.nodes {
		if node.node == pod.Spec.NodeName {
			return node
		}
	}
	return nil
}

// calmDown ends all that is not the operator's doing: the user asks for a last
// revision, and nothing stands in its way.
func (w *World) calmDown(last revision) {
	w.say("everything calms down")
	w.calm = true
	w.server.admit = nil
	w.server.admission.refusals = nil
	clear(w.hands.ahead)
	w.makeRoom()
	w.bringBackNode()
	for _, node := range w.nodes {
		node.silentUntil = time.Time{}
	}
	w.hook.silentUntil = time.Time{}
	w.server.budget.minAvailable = min(w.server.budget.minAvailable, replicasOf(w.set())-1)
	w.ask(last)
	w.giveBack()
	w.letIn()
	w.setDrainPolicy(false)
	w.endOtherDrains()
	w.calmStorage()
	w.changeSet(func(set *appsv1beta1.StatefulSet) {
		budget := w.maxUnavailable(set)
		set.Spec.UpdateStrategy = w.settings.set(last).Spec.UpdateStrategy
		rolling := set.Spec.UpdateStrategy.RollingUpdate
		rolling.MaxUnavailable = ptr.To(intstr.FromInt(budget))
		if rolling.PodUpdatePolicy == appsv1beta1.InPlaceOnlyPodUpdateStrategyType {
			rolling.PodUpdatePolicy = appsv1beta1.InPlaceIfPossiblePodUpdateStrategyType
		}
	})
}
