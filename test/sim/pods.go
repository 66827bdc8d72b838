// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"maps"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/qos"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What an API server does to objects of single kinds.

// prepareForCreate drops what a creation may not set, and fills in defaults.
func prepareForCreate(obj client.Object) {
	if hasStatus(obj) {
		part(obj, "Status").SetZero()
	}
	switch typed := obj.(type) {
	case *corev1.Pod:
		typed.Status = corev1.PodStatus{Phase: corev1.PodPending}
		for _, containers := range [][]corev1.Container{typed.Spec.Containers, typed.Spec.InitContainers} {
			for i := range containers {
				containers[i].ImagePullPolicy = cmp.Or(containers[i].ImagePullPolicy, corev1.PullIfNotPresent)
			}
		}
		typed.ManagedFields = nil
		defaultSizes(&typed.Spec)
		typed.Status.QOSClass = qos.ComputePodQOS(typed)
		if typed.Spec.TerminationGracePeriodSeconds == nil {
			typed.Spec.TerminationGracePeriodSeconds = ptr.To[int64](corev1.DefaultTerminationGracePeriodSeconds)
		}
	case *corev1.PersistentVolumeClaim:
		// Where there is no storage, volumes are there at once.
		typed.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: typed.Spec.Resources.Requests}
	}
}

// part returns the field Spec or Status of an object.
func part(obj client.Object, name string) reflect.Value {
	return reflect.ValueOf(obj).Elem().FieldByName(name)
}

// specOf returns the spec of an object, to be read.
func specOf(obj client.Object) any { return part(obj, "Spec").Interface() }

// templateOf returns the template of a workload, to be read.
func templateOf(obj client.Object) corev1.PodTemplateSpec {
	template, _ := reflect.TypeAssert[corev1.PodTemplateSpec](part(obj, "Spec").FieldByName("Template"))
	return template
}

// hasStatus reports whether objects have a status that only writes to it change.
func hasStatus(obj client.Object) bool {
	switch kind := kindOf(obj); kind {
	case "Pod", "PersistentVolumeClaim":
		return true
	default:
		return isSet(kind) || isNative(kind)
	}
}

// keepStatus makes a write to an object leave its status alone; keepSpec makes a
// write to the status leave all but the status alone. Labels and annotations may
// change with the status of a pod.
func keepStatus(held, obj client.Object) {
	if hasStatus(obj) {
		part(obj, "Status").Set(part(copyOf(held), "Status"))
	}
}

func keepSpec(held, obj client.Object) {
	switch kind := kindOf(obj); {
	case kind == "Pod":
		part(obj, "Spec").Set(part(copyOf(held), "Spec"))
	case isSet(kind):
		kept := copyOf(held)
		part(kept, "Status").Set(part(obj, "Status"))
		reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(kept).Elem())
	}
}

func copyOf(obj client.Object) client.Object {
	return obj.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy has the type of its original
}

// bumpGeneration counts changes of the spec and, of a Deployment, of annotations.
func bumpGeneration(held, obj client.Object) {
	kind := kindOf(obj)
	if kind != "Pod" && !isSet(kind) && !isNative(kind) {
		return
	}
	isAnnotated := kind == "Deployment" && !maps.Equal(held.GetAnnotations(), obj.GetAnnotations())
	if isAnnotated || !apiequality.Semantic.DeepEqual(specOf(held), specOf(obj)) {
		obj.SetGeneration(held.GetGeneration() + 1)
	}
}

// validateUpdate refuses what no update may do: of a live pod, only images can
// change.
func (s *server) validateUpdate(held, obj client.Object, subresource string) error {
	if err := validateFinalizers(held, obj); err != nil {
		return err
	}
	if claim, ok := obj.(*corev1.PersistentVolumeClaim); ok && s.storage != nil {
		return s.storage.validateUpdate(held.(*corev1.PersistentVolumeClaim), claim) //nolint:forcetypeassert // the type of obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil
	}
	before := held.(*corev1.Pod) //nolint:forcetypeassert // the type of obj
	switch subresource {
	case statusSubresource:
		return nil
	case resizeSubresource:
		return s.validateResize(before, pod)
	}
	fixed := pod.DeepCopy()
	for _, pair := range [][2][]corev1.Container{
		{fixed.Spec.Containers, before.Spec.Containers}, {fixed.Spec.InitContainers, before.Spec.InitContainers},
	} {
		for i := range min(len(pair[0]), len(pair[1])) {
			pair[0][i].Image = pair[1][i].Image
		}
	}
	if !apiequality.Semantic.DeepEqual(fixed.Spec, before.Spec) {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, pod.Name, field.ErrorList{
			field.Forbidden(field.NewPath("spec"), "pod updates may not change fields other than images"),
		})
	}
	if err := s.admission.admitImages(pod); err != nil {
		return err
	}
	if s.admit != nil && !apiequality.Semantic.DeepEqual(pod.Spec, before.Spec) {
		return s.admit(before, pod)
	}
	return nil
}

// markDeleted gives a pod the time by which it is to be gone.
func (s *server) markDeleted(pod *corev1.Pod) {
	deleted := pod.DeepCopy()
	grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
	deleted.DeletionGracePeriodSeconds = &grace
	deleted.DeletionTimestamp = &metav1.Time{Time: s.clock.Now().Add(time.Duration(grace) * time.Second)}
	deleted.Generation++
	s.store(objectKey{"Pod", pod.Name}, deleted)
}

// bind puts a pod on a node. It is no change that counts as a generation.
func (s *server) bind(pod *corev1.Pod, node string) {
	bound := pod.DeepCopy()
	bound.Spec.NodeName = node
	s.store(objectKey{"Pod", pod.Name}, bound)
}
