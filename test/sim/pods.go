// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubectl/pkg/util/qos"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// What an API server does to objects of single kinds.

// prepareForCreate drops what a creation may not set, and fills in defaults.
func prepareForCreate(obj client.Object) {
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
	case *appsv1beta1.StatefulSet:
		typed.Status = appsv1beta1.StatefulSetStatus{}
	case *appsv1beta1.CloneSet:
		typed.Status = appsv1beta1.CloneSetStatus{}
	case *appsv1.Deployment:
		typed.Status = appsv1.DeploymentStatus{}
	case *appsv1.ReplicaSet:
		typed.Status = appsv1.ReplicaSetStatus{}
	case *appsv1.StatefulSet:
		typed.Status = appsv1.StatefulSetStatus{}
	case *appsv1.DaemonSet:
		typed.Status = appsv1.DaemonSetStatus{}
	case *corev1.PersistentVolumeClaim:
		// Where there is no storage, volumes are there at once.
		typed.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: typed.Spec.Resources.Requests}
	}
}

// keepStatus makes a write to an object leave its status alone; keepSpec makes a
// write to the status leave all but the status alone. Labels and annotations may
// change with the status of a pod.
func keepStatus(held, obj client.Object) {
	switch typed := obj.(type) {
	case *corev1.Pod:
		typed.Status = *held.(*corev1.Pod).Status.DeepCopy() //nolint:forcetypeassert // the type of obj
	case *appsv1beta1.StatefulSet:
		typed.Status = *held.(*appsv1beta1.StatefulSet).Status.DeepCopy() //nolint:forcetypeassert // the type of obj
	case *appsv1beta1.CloneSet:
		typed.Status = *held.(*appsv1beta1.CloneSet).Status.DeepCopy() //nolint:forcetypeassert // the type of obj
	case *corev1.PersistentVolumeClaim:
		typed.Status = *held.(*corev1.PersistentVolumeClaim).Status.DeepCopy() //nolint:forcetypeassert // the type of obj
	default:
		keepNativeStatus(held, obj)
	}
}

func keepSpec(held, obj client.Object) {
	switch typed := obj.(type) {
	case *corev1.Pod:
		typed.Spec = *held.(*corev1.Pod).Spec.DeepCopy() //nolint:forcetypeassert // the type of obj
	case *appsv1beta1.StatefulSet:
		status := typed.Status
		held.(*appsv1beta1.StatefulSet).DeepCopyInto(typed) //nolint:forcetypeassert // the type of obj
		typed.Status = status
	case *appsv1beta1.CloneSet:
		status := typed.Status
		held.(*appsv1beta1.CloneSet).DeepCopyInto(typed) //nolint:forcetypeassert // the type of obj
		typed.Status = status
	}
}

// bumpGeneration counts changes of the spec.
func bumpGeneration(held, obj client.Object) {
	var changed bool
	switch typed := obj.(type) {
	case *corev1.Pod:
		changed = !apiequality.Semantic.DeepEqual(held.(*corev1.Pod).Spec, typed.Spec) //nolint:forcetypeassert // the type of obj
	case *appsv1beta1.StatefulSet:
		changed = !apiequality.Semantic.DeepEqual(held.(*appsv1beta1.StatefulSet).Spec, typed.Spec) //nolint:forcetypeassert // the type of obj
	case *appsv1beta1.CloneSet:
		changed = !apiequality.Semantic.DeepEqual(held.(*appsv1beta1.CloneSet).Spec, typed.Spec) //nolint:forcetypeassert // the type of obj
	default:
		changed = isNewNativeGeneration(held, obj)
	}
	if changed {
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
