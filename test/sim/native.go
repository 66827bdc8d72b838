// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/apis/native"
	nativecontroller "github.com/insitu-dev/insitu/controllers/native"
)

// nativeWorkload is a workload of Kubernetes itself, and what its controllers do
// about it: native_deployment.go and native_sets.go.
type nativeWorkload struct {
	world *World
	kind  nativecontroller.Kind
	// wish is what the user asked for last.
	wish wish
	law  *nativeLaw
	// ids counts the pods that were named, collisions the names of ReplicaSets that
	// were taken.
	ids, collisions int
	// late is what the controllers of Kubernetes see; nil where they see what there is.
	late *lateCache
	// refused says since when admission refuses pods of a revision, by its name.
	refused map[string]time.Time
}

// shown returns the state of the server that the controllers of Kubernetes see.
func (n *nativeWorkload) shown() *server {
	if n.late == nil {
		return n.world.server
	}
	return n.late.view
}

// wish is what the manifest of a user says.
type wish struct {
	revision revision
	replicas int32
	// policy opts the workload in; empty for out.
	policy appsv1beta1.PodUpdateStrategyType
	// maxUnavailable is that of the strategy, surge that of a Deployment, partition that of a
	// StatefulSet.
	maxUnavailable, surge, partition int32
	// paused: the Deployment is.
	paused bool
	// history is the limit of revisions.
	history int32
	ordered bool
	// bare: the manifest of a set says no more of its strategy than its type.
	bare bool
}

func (w wish) String() string {
	return fmt.Sprintf("revision %s, %d pods, policy %q, maxUnavailable %d, maxSurge %d, partition %d, paused %t, history %d, ordered %t, bare %t",
		w.revision.name, w.replicas, w.policy, w.maxUnavailable, w.surge, w.partition, w.paused, w.history, w.ordered, w.bare)
}

func goodNativeRevisions() []revision { return revisions[:goodRevisions] }

// newNativeWorld returns a world with a workload of Kubernetes, whose pods are still
// to be made.
func newNativeWorld(choices *Choices, s settings, kind nativecontroller.Kind, first wish) (*World, error) {
	w := &World{
		settings: s, choices: choices, clock: clocktesting.NewFakePassiveClock(start),
		story: newStory(), coverage: NewCoverage(), unlabeled: map[types.UID]time.Time{},
	}
	w.server = newServer(w.clock)
	n := &nativeWorkload{world: w, kind: kind, wish: first, refused: map[string]time.Time{}}
	w.native = n
	w.slices, w.law, w.hook, w.server.budget = newEndpoints(w), newLaw(w), newHookController(w), newBudget(w)
	n.law = newNativeLaw(n, w.law)
	w.rules = n.law
	w.server.admission.refusesPod = n.admitPod
	nodes := 2
	if kind == nativecontroller.DaemonSet {
		nodes = int(first.replicas)
	}
	for i := range nodes {
		w.nodes = append(w.nodes, newKubelet(w, fmt.Sprintf("node-%d", i), s.oldKubelets))
	}
	if s.late.on {
		n.late = newLateCache(n)
	}
	w.say("%s: %s; %s", kind, first, s)
	if err := errors.Join(w.slices.create(), w.server.create(n.manifest())); err != nil {
		return nil, err
	}
	return w, w.startManager(context.Background())
}

// object returns the workload as the server holds it; nil if there is none.
func (n *nativeWorkload) object() client.Object {
	return n.world.server.objects[n.key()]
}

func (n *nativeWorkload) key() objectKey {
	return objectKey{kindOf(n.manifest()), setName}
}

// manifest returns what the user asked for last.
func (n *nativeWorkload) manifest() client.Object {
	w := n.wish
	meta := metav1.ObjectMeta{Name: setName, Namespace: namespace, Labels: map[string]string{}}
	if w.policy != "" {
		meta.Labels[native.UpdatePolicyLabel] = string(w.policy)
	}
	if n.world.settings.gracePeriod > 0 {
		metav1.SetMetaDataAnnotation(&meta, native.GracePeriodSecondsAnnotation, fmt.Sprint(int(n.world.settings.gracePeriod/time.Second)))
	}
	if pull := n.world.settings.imagePull(); pull != nil {
		metav1.SetMetaDataAnnotation(&meta, native.ImagePullAnnotation, fmt.Sprintf(`{"timeoutSeconds":%d}`, *pull.TimeoutSeconds))
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": setName}}
	template := n.world.settings.template(w.revision)
	minReady, maxUnavailable := int32(n.world.settings.minReadySeconds), intstr.FromInt32(w.maxUnavailable) //nolint:gosec // small
	switch n.kind {
	case nativecontroller.StatefulSet:
		set := &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
			Replicas: &w.replicas, Selector: selector, Template: template, ServiceName: setName, PodManagementPolicy: appsv1.ParallelPodManagement,
			RevisionHistoryLimit: &w.history, MinReadySeconds: minReady,
			UpdateStrategy: appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
		}}
		if w.ordered {
			set.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
		}
		if !w.bare {
			set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: &w.partition, MaxUnavailable: &maxUnavailable}
		}
		return set
	case nativecontroller.DaemonSet:
		ds := &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
			Selector: selector, Template: template, RevisionHistoryLimit: &w.history, MinReadySeconds: minReady,
			UpdateStrategy: appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType},
		}}
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &maxUnavailable, MaxSurge: ptr.To(intstr.FromInt32(0))}
		return ds
	default:
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: &w.replicas, Selector: selector, Template: template, RevisionHistoryLimit: &w.history, MinReadySeconds: minReady, Paused: w.paused,
			ProgressDeadlineSeconds: ptr.To[int32](defaultDeadline),
			Strategy: appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType, RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: &maxUnavailable, MaxSurge: ptr.To(intstr.FromInt32(w.surge)),
			}},
		}}
	}
}

func (n *nativeWorkload) replicas() int {
	if n.kind == nativecontroller.DaemonSet {
		return len(n.world.nodes)
	}
	return int(n.wish.replicas)
}

// write writes to the workload as a user does: admission has its say.
func (n *nativeWorkload) write(change func(client.Object)) {
	held := n.object()
	if held == nil {
		return
	}
	obj := held.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
	change(obj)
	admitNative(held, obj)
	if !apiequality.Semantic.DeepEqual(specOf(held), specOf(obj)) || !maps.Equal(held.GetLabels(), obj.GetLabels()) || !maps.Equal(held.GetAnnotations(), obj.GetAnnotations()) {
		bumpGeneration(held, obj)
		n.world.server.store(n.key(), obj)
		n.law.wrote(held, obj)
	}
}

// ask writes what the user wants: the fields that the manifest has, as kubectl apply
// does, or the whole object, as kubectl replace does.
func (n *nativeWorkload) ask(whole bool) {
	n.law.asked()
	n.write(func(obj client.Object) {
		manifest := n.manifest()
		labels, annotations := obj.GetLabels(), obj.GetAnnotations()
		copySpec(obj, manifest)
		if whole {
			obj.SetLabels(manifest.GetLabels())
			obj.SetAnnotations(manifest.GetAnnotations())
			return
		}
		delete(labels, native.UpdatePolicyLabel)
		if labels == nil {
			labels = map[string]string{} // a replace has left none
		}
		maps.Copy(labels, manifest.GetLabels())
		obj.SetLabels(labels)
		obj.SetAnnotations(annotations)
	})
}

// askTemplate writes nothing but the template, as kubectl set image does.
func (n *nativeWorkload) askTemplate() {
	n.law.asked()
	n.write(func(obj client.Object) {
		switch typed := obj.(type) {
		case *appsv1.Deployment:
			typed.Spec.Template = n.world.settings.template(n.wish.revision)
		case *appsv1.StatefulSet:
			typed.Spec.Template = n.world.settings.template(n.wish.revision)
		case *appsv1.DaemonSet:
			typed.Spec.Template = n.world.settings.template(n.wish.revision)
		}
	})
}

func copySpec(to, from client.Object) {
	switch typed := to.(type) {
	case *appsv1.Deployment:
		typed.Spec = *from.(*appsv1.Deployment).Spec.DeepCopy() //nolint:forcetypeassert // the type of to
	case *appsv1.StatefulSet:
		typed.Spec = *from.(*appsv1.StatefulSet).Spec.DeepCopy() //nolint:forcetypeassert // the type of to
	case *appsv1.DaemonSet:
		typed.Spec = *from.(*appsv1.DaemonSet).Spec.DeepCopy() //nolint:forcetypeassert // the type of to
	}
}

// step is one second of the controllers of Kubernetes.
func (n *nativeWorkload) step() {
	n.late.deliver()
	// They may be busy with others.
	if !n.world.calm && n.world.choices.oneIn(4) {
		return
	}
	switch n.kind {
	case nativecontroller.StatefulSet:
		n.stepStatefulSet()
	case nativecontroller.DaemonSet:
		n.stepDaemonSet()
	default:
		n.stepDeployment()
		n.stepReplicaSets()
	}
}

func (n *nativeWorkload) say(format string, args ...any) {
	n.world.say("kubernetes: "+format, args...)
}

func (n *nativeWorkload) nextID() int {
	n.ids++
	return n.ids
}

// pods returns the pods that are there, and do not end.
func (n *nativeWorkload) pods() []*corev1.Pod { return podsIn(n.world.server) }

func podsIn(s *server) []*corev1.Pod {
	var found []*corev1.Pod
	pods := all[*corev1.Pod](s)
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		if pod := pods[name]; pod.DeletionTimestamp == nil && pod.Status.Phase != corev1.PodFailed {
			found = append(found, pod)
		}
	}
	return found
}

// podsOf returns those of an owner that Kubernetes sees, allPodsOf also those that end.
func (n *nativeWorkload) podsOf(owner client.Object) []*corev1.Pod {
	return slices.DeleteFunc(podsIn(n.shown()), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, owner) })
}

func (n *nativeWorkload) allPodsOf(owner client.Object) []*corev1.Pod {
	pods := slices.DeleteFunc(slices.Collect(maps.Values(all[*corev1.Pod](n.shown()))), func(pod *corev1.Pod) bool { return !metav1.IsControlledBy(pod, owner) })
	slices.SortFunc(pods, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return pods
}

func (n *nativeWorkload) createPod(owner client.Object, kind schema.GroupVersionKind, template *corev1.PodTemplateSpec, name string, labels map[string]string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	pod.Name, pod.OwnerReferences = name, []metav1.OwnerReference{*metav1.NewControllerRef(owner, kind)}
	for key, value := range labels {
		metav1.SetMetaDataLabel(&pod.ObjectMeta, key, value)
	}
	if err := n.world.server.create(pod); err != nil {
		n.say("cannot create pod %s: %v", name, err)
		return nil // it sees late that there is one
	}
	n.say("creates pod %s", name)
	n.late.wrote(owner)
	n.law.created(pod)
	return pod
}

func (n *nativeWorkload) deletePod(owner client.Object, pod *corev1.Pod, why string) {
	n.say("deletes pod %s: %s", pod.Name, why)
	if now, there := get[*corev1.Pod](n.world.server, pod.Name); there {
		n.law.deleted(now, why) // no UID is sent: it may be another one by now
	}
	_ = n.world.server.delete(objectKey{"Pod", pod.Name}, nil) // one that is gone need not go
	n.late.wrote(owner)
}

// isAvailable reports whether a pod counts as available as its user wants it.
func (n *nativeWorkload) isAvailable(pod *corev1.Pod) bool {
	return n.isAvailableFor(pod, int32(n.world.settings.minReadySeconds)) //nolint:gosec // small
}

// isAvailableFor reports whether a pod counts as available for Kubernetes.
func (n *nativeWorkload) isAvailableFor(pod *corev1.Pod, minReadySeconds int32) bool {
	if pod.DeletionTimestamp != nil || !conditionIs(pod, corev1.PodReady, corev1.ConditionTrue) {
		return false
	}
	since := conditionSince(pod, corev1.PodReady).Add(time.Duration(minReadySeconds) * time.Second)
	return !n.world.clock.Now().Before(since)
}
