// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
)

// admitNative does what the admission policies do (config/policies) when a workload
// of Kubernetes is written: they hold it, see to it that it stays so, or release it.
func admitNative(before, after client.Object) {
	_, wasOptedIn := before.GetLabels()[native.UpdatePolicyLabel]
	_, isOptedIn := after.GetLabels()[native.UpdatePolicyLabel]
	strategy := strategyOf(after)
	if strategy == nil || !wasOptedIn && !isOptedIn || after.GetDeletionTimestamp() != nil {
		return
	}
	asked := after.GetLabels()[native.HeldLabel]
	switch isAsked := !isOptedIn || asked == native.Release || strategy.isManager() || strategy.leaves(before); {
	case isHeld(before) && isAsked:
		strategy.release(before)
	case isHeld(before):
		if !strategy.isHeld(before) {
			keepAnnotation(before, after, native.StatusAnnotation)
		}
		strategy.hold(before, true)
		keepAnnotation(before, after, native.HeldObservedGenerationAnnotation)
		labelHeld(after)
	case !isAsked && hasPods(before) && strategy.begins(before):
		strategy.hold(before, false)
		delete(after.GetAnnotations(), native.HeldObservedGenerationAnnotation)
		labelHeld(after)
	case asked != "" || surges(after):
		strategy.strip(before)
	}
}

// hasPods reports whether a workload has pods, by its status.
func hasPods(obj client.Object) bool {
	switch typed := obj.(type) {
	case *appsv1.Deployment:
		return typed.Status.Replicas > 0
	case *appsv1.StatefulSet:
		return typed.Status.Replicas > 0
	case *appsv1.DaemonSet:
		return typed.Status.CurrentNumberScheduled > 0
	default:
		return false
	}
}

// isOfManager reports whether pods of a template are the manager's own.
func isOfManager(template corev1.PodTemplateSpec) bool {
	_, is := template.Labels[native.PartOfLabel]
	return is
}

// keepAnnotation gives a write the value of an annotation that the hold had before.
func keepAnnotation(before, after client.Object, key string) {
	delete(after.GetAnnotations(), key)
	if value, ok := before.GetAnnotations()[key]; ok {
		annotate(after, key, value)
	}
}

// admitNativeStatus does what the policy of the status does: the controller of a held
// StatefulSet or DaemonSet says that it has seen the generation before, and an annotation tells
// the present one.
func admitNativeStatus(before, after client.Object) {
	var observed *int64
	switch typed := after.(type) {
	case *appsv1.StatefulSet:
		observed = &typed.Status.ObservedGeneration
	case *appsv1.DaemonSet:
		observed = &typed.Status.ObservedGeneration
	}
	if observed == nil || !isHeld(after) || *observed < before.GetGeneration() {
		return
	}
	annotate(after, native.HeldObservedGenerationAnnotation, strconv.FormatInt(*observed, 10))
	*observed = before.GetGeneration() - 1
}

func annotate(obj client.Object, key, value string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[key] = value
	obj.SetAnnotations(annotations)
}

func labelHeld(obj client.Object) {
	labels := obj.GetLabels()
	labels[native.HeldLabel] = native.Held
	obj.SetLabels(labels)
}

// strategy is that part of a workload by which it recreates pods or does not.
type strategy interface {
	// isHeld reports whether a write leaves the form of the hold as it is.
	isHeld(before client.Object) bool
	// leaves reports whether a write asks for a strategy that is not held.
	leaves(before client.Object) bool
	// isManager reports whether the pods are the manager's.
	isManager() bool
	// begins reports whether a write, which was not of a held workload, begins a rollout.
	begins(before client.Object) bool
	// hold keeps the workload from recreating pods; again, if it was held before.
	hold(before client.Object, again bool)
	release(before client.Object)
	// strip removes a hold that the write brings along.
	strip(before client.Object)
}

// strategyOf returns the strategy of a workload, which is changed with it; nil for
// other objects.
func strategyOf(obj client.Object) strategy {
	switch typed := obj.(type) {
	case *appsv1.Deployment:
		return deploymentStrategy{typed}
	case *appsv1.StatefulSet:
		return statefulSetStrategy{typed}
	case *appsv1.DaemonSet:
		return daemonSetStrategy{typed}
	default:
		return nil
	}
}

type statefulSetStrategy struct{ *appsv1.StatefulSet }

func (s statefulSetStrategy) rolls() bool {
	return s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType
}

func (s statefulSetStrategy) isHeld(client.Object) bool { return !s.rolls() }
func (s statefulSetStrategy) leaves(client.Object) bool { return false }
func (s statefulSetStrategy) isManager() bool           { return isOfManager(s.Spec.Template) }

func (s statefulSetStrategy) begins(before client.Object) bool {
	old, _ := before.(*appsv1.StatefulSet)
	if s.isByHand(old) {
		return !apiequality.Semantic.DeepEqual(old.Spec.Template, s.Spec.Template)
	}
	return s.rolls() && (old.Spec.UpdateStrategy.Type != s.Spec.UpdateStrategy.Type || nativePartitionOf(s.StatefulSet) < nativePartitionOf(old) ||
		!apiequality.Semantic.DeepEqual(old.Spec.Template, s.Spec.Template))
}

func nativePartitionOf(set *appsv1.StatefulSet) int32 {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return ptr.Deref(rolling.Partition, 0)
	}
	return 0
}

// isByHand reports whether a write sets OnDelete and says that this is a hold.
func (s statefulSetStrategy) isByHand(old *appsv1.StatefulSet) bool {
	return s.Labels[native.HeldLabel] == native.Held && !s.rolls() && statefulSetStrategy{old}.rolls()
}

func (s statefulSetStrategy) strip(before client.Object) {
	if old, _ := before.(*appsv1.StatefulSet); s.isByHand(old) {
		s.Spec.UpdateStrategy = *old.Spec.UpdateStrategy.DeepCopy()
	}
	forget(s.StatefulSet)
}

func (s statefulSetStrategy) hold(before client.Object, again bool) {
	keepValues(s.StatefulSet, s.kept(before, again))
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

// kept returns the numbers by which pods are recreated when the hold ends: those of the
// write, and what it does not say as before.
func (s statefulSetStrategy) kept(before client.Object, again bool) map[string]*intstr.IntOrString {
	rolling, kept := s.Spec.UpdateStrategy.RollingUpdate, map[string]*intstr.IntOrString{}
	if old, _ := before.(*appsv1.StatefulSet); !again && s.isByHand(old) {
		rolling = old.Spec.UpdateStrategy.RollingUpdate
	}
	if again && (rolling == nil || !s.rolls()) {
		kept = keptBy(before)
	}
	if rolling != nil && (!again || s.rolls() || ptr.Deref(rolling.Partition, 0) > 0 || rolling.MaxUnavailable == nil) {
		kept[native.HeldPartitionAnnotation] = number(rolling.Partition)
	}
	if rolling != nil && rolling.MaxUnavailable != nil {
		kept[native.HeldMaxUnavailableAnnotation] = rolling.MaxUnavailable
	}
	return kept
}

func (s statefulSetStrategy) release(before client.Object) {
	kept := s.kept(before, true)
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: kept[native.HeldMaxUnavailableAnnotation]}
	if partition := kept[native.HeldPartitionAnnotation]; partition != nil {
		rolling.Partition = ptr.To(partition.IntVal)
	}
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	if *rolling != (appsv1.RollingUpdateStatefulSetStrategy{}) {
		s.Spec.UpdateStrategy.RollingUpdate = rolling
	}
	forget(s.StatefulSet)
}

type daemonSetStrategy struct{ *appsv1.DaemonSet }

func (s daemonSetStrategy) rolls() bool {
	return s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
}

func (s daemonSetStrategy) isHeld(client.Object) bool { return !s.rolls() }
func (s daemonSetStrategy) leaves(client.Object) bool { return false }
func (s daemonSetStrategy) isManager() bool           { return isOfManager(s.Spec.Template) }

func (s daemonSetStrategy) begins(before client.Object) bool {
	old, _ := before.(*appsv1.DaemonSet)
	return (s.rolls() || s.isByHand(old)) &&
		(!daemonSetStrategy{old}.rolls() || !apiequality.Semantic.DeepEqual(old.Spec.Template, s.Spec.Template))
}

// isByHand reports whether a write sets OnDelete and says that this is a hold.
func (s daemonSetStrategy) isByHand(old *appsv1.DaemonSet) bool {
	return s.Labels[native.HeldLabel] == native.Held && !s.rolls() && daemonSetStrategy{old}.rolls()
}

func (s daemonSetStrategy) strip(before client.Object) {
	if old, _ := before.(*appsv1.DaemonSet); s.isByHand(old) {
		s.Spec.UpdateStrategy = *old.Spec.UpdateStrategy.DeepCopy()
	}
	forget(s.DaemonSet)
}

func (s daemonSetStrategy) hold(before client.Object, again bool) {
	keepValues(s.DaemonSet, s.kept(before, again))
	s.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
}

// kept is that of StatefulSets.
func (s daemonSetStrategy) kept(before client.Object, again bool) map[string]*intstr.IntOrString {
	rolling, kept := s.Spec.UpdateStrategy.RollingUpdate, map[string]*intstr.IntOrString{}
	if old, _ := before.(*appsv1.DaemonSet); !again && s.isByHand(old) {
		rolling = old.Spec.UpdateStrategy.RollingUpdate
	}
	if again {
		kept = keptBy(before)
	}
	if rolling != nil && rolling.MaxUnavailable != nil {
		kept[native.HeldMaxUnavailableAnnotation] = rolling.MaxUnavailable
	}
	if rolling != nil && rolling.MaxSurge != nil {
		kept[native.HeldMaxSurgeAnnotation] = rolling.MaxSurge
	}
	return kept
}

func (s daemonSetStrategy) release(before client.Object) {
	kept := s.kept(before, true)
	rolling := &appsv1.RollingUpdateDaemonSet{MaxUnavailable: kept[native.HeldMaxUnavailableAnnotation], MaxSurge: kept[native.HeldMaxSurgeAnnotation]}
	s.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.RollingUpdateDaemonSetStrategyType}
	if *rolling != (appsv1.RollingUpdateDaemonSet{}) {
		s.Spec.UpdateStrategy.RollingUpdate = rolling
	}
	forget(s.DaemonSet)
}

// heldValues are the annotations that keep what a hold replaced.
var heldValues = []string{
	native.HeldPartitionAnnotation, native.HeldMaxUnavailableAnnotation, native.HeldMaxSurgeAnnotation,
	native.HeldMinReadySecondsAnnotation, native.HeldProgressDeadlineSecondsAnnotation,
}

// keptBy returns what a held workload keeps.
func keptBy(obj client.Object) map[string]*intstr.IntOrString {
	kept := map[string]*intstr.IntOrString{}
	for _, key := range heldValues {
		if value, ok := obj.GetAnnotations()[key]; ok {
			kept[key] = ptr.To(intstr.Parse(value))
		}
	}
	return kept
}

func keepValues(obj client.Object, values map[string]*intstr.IntOrString) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	for _, key := range heldValues {
		delete(annotations, key)
		if value := values[key]; value != nil {
			annotations[key] = value.String()
		}
	}
	obj.SetAnnotations(annotations)
}

// forget removes what tells of a hold.
func forget(obj client.Object) {
	labels, annotations := obj.GetLabels(), obj.GetAnnotations()
	delete(labels, native.HeldLabel)
	for _, key := range append([]string{native.StatusAnnotation, native.HeldObservedGenerationAnnotation}, heldValues...) {
		delete(annotations, key)
	}
	obj.SetLabels(labels)
	obj.SetAnnotations(annotations)
}

func number(value *int32) *intstr.IntOrString {
	if value == nil {
		return nil
	}
	return ptr.To(intstr.FromInt32(*value))
}

// isHeld reports whether a workload is held.
func isHeld(obj metav1.Object) bool { return obj.GetLabels()[native.HeldLabel] != "" }
