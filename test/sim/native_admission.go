// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"slices"
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
		for _, key := range ofStatus {
			keepAnnotation(before, after, key)
		}
		labelHeld(after)
	case !isAsked && hasPods(before) && strategy.begins(before):
		strategy.hold(before, false)
		for _, key := range ofStatus {
			delete(after.GetAnnotations(), key)
		}
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

// ofStatus are the annotations of what the controller of a held workload wrote into its status.
var ofStatus = []string{native.HeldObservedGenerationAnnotation, native.HeldCurrentRevisionAnnotation}

// admitNativeStatus does what the policy of the status does: the controller of a held
// StatefulSet or DaemonSet says that it has seen the generation before at most, and that of a
// StatefulSet makes pods at the new revision. Annotations tell what it wrote.
func admitNativeStatus(before, after client.Object) {
	if !isHeld(after) {
		return
	}
	// The controllers of the simulation say what they have seen with every write.
	var observed *int64
	switch typed := after.(type) {
	case *appsv1.StatefulSet:
		observed = &typed.Status.ObservedGeneration
		if apiequality.Semantic.DeepEqual(before.(*appsv1.StatefulSet).Status, typed.Status) { //nolint:forcetypeassert // it is the same object
			return
		}
		admitRevisions(typed)
	case *appsv1.DaemonSet:
		observed = &typed.Status.ObservedGeneration
		if apiequality.Semantic.DeepEqual(before.(*appsv1.DaemonSet).Status, typed.Status) { //nolint:forcetypeassert // it is the same object
			return
		}
	default:
		return
	}
	annotate(after, native.HeldObservedGenerationAnnotation, strconv.FormatInt(*observed, 10))
	*observed = min(*observed, before.GetGeneration()-1)
}

// admitRevisions has a pod that is deleted come back at the new revision.
func admitRevisions(set *appsv1.StatefulSet) {
	status := &set.Status
	if !(statefulSetStrategy{set}).parts() || set.Annotations[native.HeldPartitionAnnotation] != "0" || status.UpdateRevision == "" || status.CurrentRevision == status.UpdateRevision {
		return
	}
	if _, isKept := set.Annotations[native.HeldCurrentRevisionAnnotation]; !isKept && status.CurrentRevision != "" {
		annotate(set, native.HeldCurrentRevisionAnnotation, status.CurrentRevision)
	}
	status.CurrentRevision = status.UpdateRevision
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

// parts reports whether the partition is that of a hold.
func (s statefulSetStrategy) parts() bool {
	return s.rolls() && nativePartitionOf(s.StatefulSet) == native.HeldPartition
}

func (s statefulSetStrategy) isHeld(before client.Object) bool {
	old, _ := before.(*appsv1.StatefulSet)
	return !s.rolls() || statefulSetStrategy{old}.rolls() && s.parts()
}

func (s statefulSetStrategy) leaves(client.Object) bool { return false }
func (s statefulSetStrategy) isManager() bool           { return isOfManager(s.Spec.Template) }

func (s statefulSetStrategy) begins(before client.Object) bool {
	old, _ := before.(*appsv1.StatefulSet)
	if s.isByHand(old) {
		return !apiequality.Semantic.DeepEqual(old.Spec.Template, s.Spec.Template)
	}
	return s.rolls() && !s.parts() && (old.Spec.UpdateStrategy.Type != s.Spec.UpdateStrategy.Type || nativePartitionOf(s.StatefulSet) < nativePartitionOf(old) ||
		!apiequality.Semantic.DeepEqual(old.Spec.Template, s.Spec.Template))
}

func nativePartitionOf(set *appsv1.StatefulSet) int32 {
	if rolling := set.Spec.UpdateStrategy.RollingUpdate; rolling != nil {
		return ptr.Deref(rolling.Partition, 0)
	}
	return 0
}

// isByHand reports whether a write sets the strategy of a hold and says that this is one.
func (s statefulSetStrategy) isByHand(old *appsv1.StatefulSet) bool {
	return s.Labels[native.HeldLabel] == native.Held && (!s.rolls() || s.parts()) && statefulSetStrategy{old}.rolls() && !statefulSetStrategy{old}.parts()
}

func (s statefulSetStrategy) strip(before client.Object) {
	if old, _ := before.(*appsv1.StatefulSet); s.isByHand(old) {
		s.Spec.UpdateStrategy = *old.Spec.UpdateStrategy.DeepCopy()
	}
	forget(s.StatefulSet)
}

// hold is by the partition, unless it is one by OnDelete already, its user has a partition, or
// pods are missing.
func (s statefulSetStrategy) hold(before client.Object, again bool) {
	old, _ := before.(*appsv1.StatefulSet)
	kept := s.kept(old, again)
	isOnDelete := !s.rolls() || !statefulSetStrategy{old}.rolls()
	if !again {
		partition := kept[native.HeldPartitionAnnotation]
		isOnDelete = partition == nil || partition.IntVal != 0 || old.Status.Replicas < ptr.Deref(s.Spec.Replicas, 1)
	}
	if isOnDelete {
		keepValues(s.StatefulSet, kept)
		s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
		return
	}
	unavailable := cmp.Or(kept[native.HeldMaxUnavailableAnnotation], ptr.To(intstr.FromInt32(1)))
	delete(kept, native.HeldMaxUnavailableAnnotation)
	keepValues(s.StatefulSet, kept)
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
		Type:          appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To(native.HeldPartition), MaxUnavailable: unavailable},
	}
}

// kept returns the numbers by which pods are recreated when the hold ends: those of the
// write, and what it does not say as before.
func (s statefulSetStrategy) kept(old *appsv1.StatefulSet, again bool) map[string]*intstr.IntOrString {
	rolling := s.Spec.UpdateStrategy.RollingUpdate
	if !again {
		if s.isByHand(old) {
			rolling = old.Spec.UpdateStrategy.RollingUpdate
		}
		return numbersOf(rolling)
	}
	wasParted := statefulSetStrategy{old}.rolls()
	restates := wasParted && nativePartitionOf(s.StatefulSet) == native.HeldPartition
	if s.rolls() && !restates && (wasParted || rolling != nil) {
		return numbersOf(rolling)
	}
	kept := keptBy(old)
	if wasParted {
		kept[native.HeldMaxUnavailableAnnotation] = numbersOf(old.Spec.UpdateStrategy.RollingUpdate)[native.HeldMaxUnavailableAnnotation]
	}
	said := numbersOf(rolling)
	if restates || !s.rolls() && rolling != nil && rolling.MaxUnavailable != nil && ptr.Deref(rolling.Partition, 0) == 0 {
		delete(said, native.HeldPartitionAnnotation)
	}
	maps.Copy(kept, said)
	return kept
}

// numbersOf returns the numbers of a strategy, by the annotations that keep them.
func numbersOf(rolling *appsv1.RollingUpdateStatefulSetStrategy) map[string]*intstr.IntOrString {
	numbers := map[string]*intstr.IntOrString{}
	if rolling == nil {
		return numbers
	}
	if rolling.Partition != nil {
		numbers[native.HeldPartitionAnnotation] = number(rolling.Partition)
	}
	if rolling.MaxUnavailable != nil {
		numbers[native.HeldMaxUnavailableAnnotation] = rolling.MaxUnavailable
	}
	return numbers
}

func (s statefulSetStrategy) release(before client.Object) {
	old, _ := before.(*appsv1.StatefulSet)
	kept := s.kept(old, true)
	partition, unavailable := kept[native.HeldPartitionAnnotation], kept[native.HeldMaxUnavailableAnnotation]
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType}
	if partition != nil || unavailable != nil && *unavailable != intstr.FromInt32(1) {
		s.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: unavailable}
	}
	if partition != nil {
		s.Spec.UpdateStrategy.RollingUpdate.Partition = ptr.To(partition.IntVal)
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
	for _, key := range slices.Concat(ofStatus, heldValues, []string{native.StatusAnnotation}) {
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
