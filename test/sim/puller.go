// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/inplace"
)

// Pods that have images pulled are a kind of their own here: what the law says of the pods of a
// set has nothing to do with them.

const pullerKind = "Puller"

// RunPulls is Run for a set whose images are pulled before its pods are taken out of service.
func RunPulls(choices *Choices) Result {
	s := chosen(choices)
	s.ahead, s.pullTime, s.rejects = true, 1+choices.intN(20), pick(choices, []int{0, 0, 8, 3})
	return run(choices, s)
}

// RunNativePulls is RunNative for a workload whose images are pulled before.
func RunNativePulls(choices *Choices) Result {
	s, kind, first := chosenNative(choices)
	s.ahead, s.pullTime, s.rejects = true, 1+choices.intN(20), pick(choices, []int{0, 0, 8, 3})
	return runNative(choices, s, kind, first)
}

// pulling returns how the manager pulls images for a set that does not say it: those of the other
// runs are where the kubelets get them.
func (s settings) pulling() *executor.Pulling {
	if s.ahead {
		return &executor.Pulling{}
	}
	return &executor.Pulling{Policy: appsv1beta1.NoImagePull}
}

// imagePull returns what the set says of pulls, if it does: nothing goes on for want of an answer,
// in the time that a run has.
func (s settings) imagePull() *appsv1beta1.ImagePullPolicy {
	if !s.ahead || s.unasked {
		return nil
	}
	hours := int32(24 * time.Hour / time.Second)
	return &appsv1beta1.ImagePullPolicy{TimeoutSeconds: &hours}
}

// named returns an object as the server has it, if it is a puller: a client names it as a pod.
func (s *server) named(obj client.Object) client.Object {
	if puller, ok := s.objects[objectKey{pullerKind, obj.GetName()}]; ok && kindOf(obj) == "Pod" {
		return puller
	}
	return obj
}

// imageStore is what a node knows of images.
type imageStore struct {
	// has are those that are on the node; begun is when pullers were seen first.
	has   sets.Set[string]
	begun map[types.UID]time.Time
}

func newImageStore() imageStore {
	return imageStore{has: sets.New[string](), begun: map[types.UID]time.Time{}}
}

// pull works on the pullers of the node.
func (k *kubelet) pull() {
	s := k.world.server
	for _, key := range s.keys() {
		puller, ok := s.objects[key].(*corev1.Pod)
		if key.kind != pullerKind || !ok || puller.Spec.NodeName != k.node || puller.Status.Phase == corev1.PodFailed {
			continue
		}
		began, seen := k.images.begun[puller.UID]
		switch {
		case !seen && k.world.settings.rejects > 0 && k.world.choices.oneIn(k.world.settings.rejects):
			k.world.say("kubelet: rejects %s", key.name)
			mutateAt(s, key, func(obj client.Object) {
				obj.(*corev1.Pod).Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfpods"} //nolint:forcetypeassert // it is one
			})
		case !seen:
			k.images.begun[puller.UID] = k.world.clock.Now()
			k.report(key, func(string) corev1.ContainerState { return waitingFor("ContainerCreating") })
		case k.world.clock.Now().Before(began.Add(time.Duration(k.world.settings.pullTime) * time.Second)):
		default:
			k.report(key, func(image string) corev1.ContainerState {
				if isImage(image, missingImage) {
					return waitingFor("ErrImagePull")
				}
				k.images.has.Insert(contentOf(image))
				return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "StartError", ExitCode: 128}}
			})
		}
	}
}

// report publishes the status of a puller.
func (k *kubelet) report(key objectKey, stateOf func(image string) corev1.ContainerState) {
	mutateAt(k.world.server, key, func(obj client.Object) {
		puller := obj.(*corev1.Pod) //nolint:forcetypeassert // it is one
		puller.Status.ContainerStatuses, puller.Status.Phase = nil, corev1.PodFailed
		for _, c := range puller.Spec.Containers {
			state := stateOf(c.Image)
			if state.Terminated == nil {
				puller.Status.Phase = corev1.PodPending
			}
			puller.Status.ContainerStatuses = append(puller.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name, Image: c.Image, State: state})
		}
	})
}

// pullers returns the pullers of the set, by name.
func (w *World) pullers() map[string]*corev1.Pod {
	found := map[string]*corev1.Pod{}
	for key, obj := range w.server.objects {
		if puller, ok := obj.(*corev1.Pod); ok && key.kind == pullerKind && metav1.GetControllerOf(puller) != nil {
			found[key.name] = puller
		}
	}
	return found
}

// checkPulled asserts that no pod that serves is taken out of service for images that are not on
// its node, whoever pulled them.
func (l *law) checkPulled(w write) {
	before, after, ok := l.podsOf(w)
	serves := ok && conditionIs(before, corev1.PodReady, corev1.ConditionTrue) && !inplace.IsBroken(l.seen[before.Name])
	if !serves || !l.world.settings.ahead || l.seenSet == nil || lifecycleStateOf(after) == appsv1beta1.LifecycleStatePreparingDelete {
		return // one that is to be deleted gets no image
	}
	wanted := l.seenSet.Spec.Template.Spec
	if before.Generation != after.Generation {
		wanted = after.Spec
	}
	l.world.checkOnNode(w, before, wanted)
}

// checkPulledBefore asserts that no pod that serves is deleted, or given to a hook for that, for
// another to be made in its place, while the images of that are not on its node. A user may ask for it.
func (l *law) checkPulledBefore(w write) {
	pod, ok := w.before.(*corev1.Pod)
	if !ok || !l.world.settings.ahead || l.seenSet == nil || pod.DeletionTimestamp != nil {
		return
	}
	_, isAsked := pod.Labels[appsv1beta1.SpecifiedDeleteKey]
	isAsked = isAsked || l.seenClones != nil && slices.Contains(l.seenClones.Spec.ScaleStrategy.PodsToDelete, pod.Name)
	serves := conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) && !inplace.IsBroken(l.seen[pod.Name])
	if serves && !isAsked && l.isToStay(w, pod) && !l.isHeld(pod.Name, l.seenSet) {
		l.world.checkOnNode(w, pod, l.seenSet.Spec.Template.Spec)
	}
}

// checkPulled asserts that no pod that serves is taken out of service for images that are not on its
// node.
func (l *nativeLaw) checkPulled(w write, before, after *corev1.Pod) {
	shown := l.seen[before.Name]
	if l.seenObject == nil || shown == nil || inplace.IsBroken(shown) {
		return
	}
	isChanged, serves := before.Generation != after.Generation, conditionIs(before, corev1.PodReady, corev1.ConditionTrue)
	_, mayGo := l.seenObject.(*appsv1.Deployment) // to be made by another ReplicaSet
	switch {
	case isChanged && (serves || mayGo):
		l.n.world.checkOnNode(w, before, after.Spec)
	case !isChanged && serves && !mayGo:
		l.n.world.checkOnNode(w, before, templateOf(l.seenObject).Spec)
	}
}

// checkPulledBefore asserts that a StatefulSet or a DaemonSet is not given back to Kubernetes for a field
// that no live pod can change, while no node has the images of new pods.
func (l *nativeLaw) checkPulledBefore(note string) {
	if _, isDeployment := l.seenObject.(*appsv1.Deployment); isDeployment || l.seenObject == nil || !l.n.world.settings.ahead || l.n.world.settings.unasked || !strings.Contains(note, "spec.") {
		return
	}
	for _, pod := range l.seen {
		if conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) && !inplace.IsBroken(pod) {
			l.n.world.checkOnAnyNode(note, pod, templateOf(l.seenObject).Spec)
		}
	}
}

// checkOnAnyNode asserts that the images that a pod is to have instead of its own are on a node.
func (w *World) checkOnAnyNode(words string, pod *corev1.Pod, spec corev1.PodSpec) {
	was, wanted := images(pod), images(&corev1.Pod{Spec: spec})
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		image := wanted[name]
		has := func(k *kubelet) bool { return k.images.has.Has(contentOf(image)) }
		if was[name] != "" && !means(was[name], image) && !slices.ContainsFunc(w.nodes, has) {
			w.violate("%s: no node has %s", words, image)
		}
	}
}

// checkOnNode asserts that the images that a pod is to have instead of its own are on its node.
func (w *World) checkOnNode(taken write, pod *corev1.Pod, spec corev1.PodSpec) {
	i := slices.IndexFunc(w.nodes, func(k *kubelet) bool { return k.node == pod.Spec.NodeName })
	if i < 0 || !w.settings.ahead || w.settings.unasked {
		return
	}
	was, wanted := images(pod), images(&corev1.Pod{Spec: spec})
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if image := wanted[name]; was[name] != "" && !means(was[name], image) && !w.nodes[i].images.has.Has(contentOf(image)) {
			w.violate("%s takes the pod out of service for %s, which is not on %s", taken.words, image, pod.Spec.NodeName)
		}
	}
}

// checkPullers asserts that there is one puller at a time for what a node needs.
func (l *law) checkPullers() {
	on := map[string]string{}
	for name, puller := range l.world.pullers() {
		what := fmt.Sprint(slices.Sorted(maps.Values(images(puller))), " onto ", puller.Spec.NodeName)
		if other, there := on[what]; there {
			l.world.violate("%s and %s pull %s", name, other, what)
		}
		on[what] = name
	}
}
