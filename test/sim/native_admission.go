// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	appsv1 "k8s.io/api/apps/v1"
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
	isHeld := before.GetLabels()[native.HeldLabel] != ""
	switch asked := after.GetLabels()[native.HeldLabel]; {
	case isHeld && (!isOptedIn || asked == native.Release):
		strategy.release(before)
	case isHeld, isOptedIn && strategy.rolls() && strategyOf(before).isChangedBy(after):
		strategy.hold(before, isHeld)
		labelHeld(after)
	}
}

func labelHeld(obj client.Object) {
	labels := obj.GetLabels()
	labels[native.HeldLabel] = native.Held
	obj.SetLabels(labels)
}

// strategy is that part of a workload by which it recreates pods or does not.
type strategy interface {
	// rolls reports whether pods would be recreated for the template.
	rolls() bool
	// isChangedBy reports whether another state of the workload may begin it.
	isChangedBy(after client.Object) bool
	// hold keeps the workload from recreating pods; again, if it was held before.
	hold(before client.Object, again bool)
	release(before client.Object)
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

type deploymentStrategy struct{ *appsv1.Deployment }

func (s deploymentStrategy) rolls() bool {
	return !s.Spec.Paused && s.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType
}

func (s deploymentStrategy) isChangedBy(after client.Object) bool {
	other, _ := after.(*appsv1.Deployment)
	return s.Spec.Paused || !apiequality.Semantic.DeepEqual(s.Spec.Template, other.Spec.Template) || s.Spec.Strategy.Type != other.Spec.Strategy.Type
}

func (s deploymentStrategy) hold(client.Object, bool) { s.Spec.Paused = true }

func (s deploymentStrategy) release(client.Object) {
	s.Spec.Paused = false
	forget(s.Deployment)
}

type statefulSetStrategy struct{ *appsv1.StatefulSet }

func (s statefulSetStrategy) rolls() bool {
	return s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType
}

func (s statefulSetStrategy) isChangedBy(after client.Object) bool {
	other, _ := after.(*appsv1.StatefulSet)
	return !apiequality.Semantic.DeepEqual(s.Spec.Template, other.Spec.Template) || !apiequality.Semantic.DeepEqual(s.Spec.UpdateStrategy, other.Spec.UpdateStrategy)
}

func (s statefulSetStrategy) hold(before client.Object, again bool) {
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; !again || s.rolls() || rolling != nil {
		keep := map[string]*intstr.IntOrString{}
		if rolling != nil {
			keep[native.HeldPartitionAnnotation], keep[native.HeldMaxUnavailableAnnotation] = number(rolling.Partition), rolling.MaxUnavailable
		}
		keepValues(s.StatefulSet, keep)
	} else {
		keepValues(s.StatefulSet, keptBy(before))
	}
	s.Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
}

func (s statefulSetStrategy) release(before client.Object) {
	if !s.rolls() && s.Spec.UpdateStrategy.RollingUpdate == nil {
		kept := keptBy(before)
		rolling := &appsv1.RollingUpdateStatefulSetStrategy{MaxUnavailable: kept[native.HeldMaxUnavailableAnnotation]}
		if partition := kept[native.HeldPartitionAnnotation]; partition != nil {
			rolling.Partition = ptr.To(partition.IntVal)
		}
		if *rolling != (appsv1.RollingUpdateStatefulSetStrategy{}) {
			s.Spec.UpdateStrategy.RollingUpdate = rolling
		}
	}
	s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
	forget(s.StatefulSet)
}

type daemonSetStrategy struct{ *appsv1.DaemonSet }

func (s daemonSetStrategy) rolls() bool {
	return s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType
}

func (s daemonSetStrategy) isChangedBy(after client.Object) bool {
	other, _ := after.(*appsv1.DaemonSet)
	return !apiequality.Semantic.DeepEqual(s.Spec.Template, other.Spec.Template) || !apiequality.Semantic.DeepEqual(s.Spec.UpdateStrategy, other.Spec.UpdateStrategy)
}

func (s daemonSetStrategy) hold(before client.Object, again bool) {
	if rolling := s.Spec.UpdateStrategy.RollingUpdate; !again || s.rolls() || rolling != nil {
		keep := map[string]*intstr.IntOrString{}
		if rolling != nil {
			keep[native.HeldMaxSurgeAnnotation], keep[native.HeldMaxUnavailableAnnotation] = rolling.MaxSurge, rolling.MaxUnavailable
		}
		keepValues(s.DaemonSet, keep)
	} else {
		keepValues(s.DaemonSet, keptBy(before))
	}
	s.Spec.UpdateStrategy = appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
}

func (s daemonSetStrategy) release(before client.Object) {
	if !s.rolls() && s.Spec.UpdateStrategy.RollingUpdate == nil {
		kept := keptBy(before)
		rolling := &appsv1.RollingUpdateDaemonSet{MaxUnavailable: kept[native.HeldMaxUnavailableAnnotation], MaxSurge: kept[native.HeldMaxSurgeAnnotation]}
		if *rolling != (appsv1.RollingUpdateDaemonSet{}) {
			s.Spec.UpdateStrategy.RollingUpdate = rolling
		}
	}
	s.Spec.UpdateStrategy.Type = appsv1.RollingUpdateDaemonSetStrategyType
	forget(s.DaemonSet)
}

// heldValues are the annotations that keep what a hold replaced.
var heldValues = []string{native.HeldPartitionAnnotation, native.HeldMaxUnavailableAnnotation, native.HeldMaxSurgeAnnotation}

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
	for _, key := range append([]string{native.StatusAnnotation}, heldValues...) {
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
