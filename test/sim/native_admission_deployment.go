// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
)

// deploymentStrategy is held by a pod more, or, where none is allowed, by a pause.
type deploymentStrategy struct{ *appsv1.Deployment }

func (s deploymentStrategy) isManager() bool { return isOfManager(s.Spec.Template) }

// surges reports whether a Deployment is held by a pod more.
func surges(obj client.Object) bool {
	d, ok := obj.(*appsv1.Deployment)
	return ok && d.Spec.MinReadySeconds == native.HeldMinReadySeconds
}

// surgeFields are the fields of a hold by a pod more, by the annotations that keep what they
// were.
type surgeFields map[string]intstr.IntOrString

var heldFields = surgeFields{
	native.HeldMaxUnavailableAnnotation:          intstr.FromString(native.HeldMaxUnavailable),
	native.HeldMaxSurgeAnnotation:                intstr.FromString(native.HeldMaxSurge),
	native.HeldMinReadySecondsAnnotation:         intstr.FromInt32(native.HeldMinReadySeconds),
	native.HeldProgressDeadlineSecondsAnnotation: intstr.FromInt32(native.HeldProgressDeadlineSeconds),
}

const defaultShare, defaultDeadline = "25%", 600

// fields returns what a Deployment says of them.
func (s deploymentStrategy) fields() surgeFields {
	rolling := ptr.Deref(s.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
	return surgeFields{
		native.HeldMaxUnavailableAnnotation:          ptr.Deref(rolling.MaxUnavailable, intstr.FromString(defaultShare)),
		native.HeldMaxSurgeAnnotation:                ptr.Deref(rolling.MaxSurge, intstr.FromString(defaultShare)),
		native.HeldMinReadySecondsAnnotation:         intstr.FromInt32(s.Spec.MinReadySeconds),
		native.HeldProgressDeadlineSecondsAnnotation: intstr.FromInt32(ptr.Deref(s.Spec.ProgressDeadlineSeconds, defaultDeadline)),
	}
}

// setFields writes them.
func (s deploymentStrategy) setFields(fields surgeFields) {
	s.Spec.MinReadySeconds = fields[native.HeldMinReadySecondsAnnotation].IntVal
	s.Spec.ProgressDeadlineSeconds = ptr.To(fields[native.HeldProgressDeadlineSecondsAnnotation].IntVal)
	if s.Spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		s.Spec.Strategy.RollingUpdate = &appsv1.RollingUpdateDeployment{
			MaxUnavailable: ptr.To(fields[native.HeldMaxUnavailableAnnotation]), MaxSurge: ptr.To(fields[native.HeldMaxSurgeAnnotation]),
		}
	}
}

// wished returns what the fields become when the hold ends: what the write says, and what it
// does not say, as it has the value of the hold, as it was.
func (s deploymentStrategy) wished(held, stored surgeFields) surgeFields {
	said := s.fields()
	for key := range said {
		if said[key] == held[key] {
			said[key] = stored[key]
		}
	}
	return said
}

// many is how many replicas are more than a hundred: a percentage of them may be more pods
// than a number that the user allows.
const many = 101

// held returns the fields of a hold.
func (s deploymentStrategy) held(surge intstr.IntOrString) surgeFields {
	held := maps.Clone(heldFields)
	if surge.Type == intstr.Int && ptr.Deref(s.Spec.Replicas, 1) >= many {
		held[native.HeldMaxSurgeAnnotation] = intstr.FromInt32(1)
	}
	return held
}

// keptFields returns what a held Deployment keeps.
func keptFields(obj client.Object) surgeFields {
	kept := surgeFields{}
	for key, value := range keptBy(obj) {
		kept[key] = *value
	}
	return kept
}

func (s deploymentStrategy) isHeld(before client.Object) bool {
	if !surges(before) {
		return s.Spec.Paused
	}
	old, _ := before.(*appsv1.Deployment)
	return apiequality.Semantic.DeepEqual(s.fields(), deploymentStrategy{old}.fields())
}

func (s deploymentStrategy) leaves(before client.Object) bool {
	return surges(before) && s.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType
}

// isByHand reports whether a write brings a hold along: that by a pod more by its form, a
// pause if the write says that it is one.
func (s deploymentStrategy) isByHand(old *appsv1.Deployment) bool {
	if surges(s.Deployment) {
		return !surges(old)
	}
	return s.Labels[native.HeldLabel] == native.Held && s.Spec.Paused && !old.Spec.Paused
}

func (s deploymentStrategy) begins(before client.Object) bool {
	old, _ := before.(*appsv1.Deployment)
	if s.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || s.Spec.Paused && !s.isByHand(old) {
		return false
	}
	return old.Spec.Paused || old.Spec.Strategy.Type != s.Spec.Strategy.Type || !apiequality.Semantic.DeepEqual(old.Spec.Template, s.Spec.Template)
}

func (s deploymentStrategy) strip(before client.Object) {
	if old, _ := before.(*appsv1.Deployment); s.isByHand(old) {
		s.unhold(old)
	}
	forget(s.Deployment)
}

// unhold takes off the hold that a write brings along.
func (s deploymentStrategy) unhold(old *appsv1.Deployment) {
	if surges(s.Deployment) {
		s.setFields(s.wished(heldFields, deploymentStrategy{old}.fields()))
	} else {
		s.Spec.Paused = false
	}
}

func (s deploymentStrategy) hold(before client.Object, again bool) {
	old, _ := before.(*appsv1.Deployment)
	if again && !surges(old) {
		s.Spec.Paused = true
		return
	}
	kept := s.wished(deploymentStrategy{old}.fields(), keptFields(old))
	if !again {
		if s.isByHand(old) {
			s.unhold(old)
		}
		if kept = s.fields(); isNone(kept[native.HeldMaxSurgeAnnotation]) {
			keepValues(s.Deployment, nil)
			s.Spec.Paused = true
			return
		}
	}
	values := map[string]*intstr.IntOrString{}
	for key, value := range kept {
		values[key] = &value
	}
	keepValues(s.Deployment, values)
	if again {
		s.setFields(deploymentStrategy{old}.fields())
	} else {
		s.setFields(s.held(kept[native.HeldMaxSurgeAnnotation]))
	}
}

func isNone(value intstr.IntOrString) bool {
	const all = 100
	scaled, err := intstr.GetScaledValueFromIntOrPercent(&value, all, true)
	return err == nil && scaled == 0
}

func (s deploymentStrategy) release(before client.Object) {
	if old, _ := before.(*appsv1.Deployment); surges(old) {
		s.setFields(s.wished(deploymentStrategy{old}.fields(), keptFields(old)))
	} else {
		s.Spec.Paused = false
	}
	forget(s.Deployment)
}
