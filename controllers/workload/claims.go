// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubectl/pkg/util/podutils"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// MountClaims makes the claim of each template a volume of the pod, in place of a
// volume of the same name.
func MountClaims(pod *corev1.Pod, templates []corev1.PersistentVolumeClaim) {
	for i := range templates {
		name := templates[i].Name
		volume := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: volumes.ClaimName(name, pod.Name)},
		}}
		pod.Spec.Volumes = slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		pod.Spec.Volumes = append(pod.Spec.Volumes, volume)
	}
}

// NewClaim returns the claim that a pod has from a template, with labels beside
// those of the template. An owner of nil is none.
func NewClaim(
	template *corev1.PersistentVolumeClaim, pod client.ObjectKey, labels map[string]string, owner *metav1.OwnerReference,
) *corev1.PersistentVolumeClaim {
	template = template.DeepCopy()
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: volumes.ClaimName(template.Name, pod.Name), Namespace: pod.Namespace,
			Labels: map[string]string{}, Annotations: template.Annotations,
		},
		Spec: template.Spec,
	}
	delete(claim.Annotations, appsv1beta1.UndoRecreateAnnotation) // it asks of one claim, once
	maps.Copy(claim.Labels, template.Labels)
	maps.Copy(claim.Labels, labels)
	if owner != nil {
		claim.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	return claim
}

// TemplateOf returns a template with a name that makes claims as this one.
func TemplateOf(name string, claim *corev1.PersistentVolumeClaim) corev1.PersistentVolumeClaim {
	spec := claim.Spec.DeepCopy()
	spec.VolumeName, spec.DataSource, spec.DataSourceRef = "", nil, nil
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: *spec}
}

// MountsWithoutVolume returns the names of the volumes that containers of a pod mount, or have
// as devices, and that the pod does not have, sorted.
func MountsWithoutVolume(spec *corev1.PodSpec) []string {
	names := sets.New[string]()
	podutils.VisitContainers(spec, podutils.AllContainers, func(c *corev1.Container, _ podutils.ContainerType) bool {
		for _, mount := range c.VolumeMounts {
			names.Insert(mount.Name)
		}
		for _, device := range c.VolumeDevices {
			names.Insert(device.Name)
		}
		return true
	})
	for i := range spec.Volumes {
		names.Delete(spec.Volumes[i].Name)
	}
	return sets.List(names)
}

// ClaimsOf returns those of the claims that a pod uses.
func ClaimsOf(pod *corev1.Pod, claims []*corev1.PersistentVolumeClaim) []*corev1.PersistentVolumeClaim {
	return slices.DeleteFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool {
		return !Uses(pod, claim.Name)
	})
}

// Uses reports whether a pod has a volume from a claim of its namespace.
func Uses(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim
	})
}

// HasOwnClaims reports whether a pod has claims from claim templates of its workload.
func HasOwnClaims(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(volume corev1.Volume) bool {
		return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == volumes.ClaimName(volume.Name, pod.Name)
	})
}

// EnsureClaims makes the claims that do not exist yet. Claims outlive their
// pods; one that exists is taken as it is. mayMake tells which may be made; nil makes
// all.
func EnsureClaims(ctx context.Context, c client.Client, owner Owner, claims []*corev1.PersistentVolumeClaim, mayMake func(string) bool) error {
	for _, claim := range claims {
		existing := &corev1.PersistentVolumeClaim{}
		err := c.Get(ctx, client.ObjectKeyFromObject(claim), existing)
		switch {
		case apierrors.IsNotFound(err) && mayMake != nil && !mayMake(claim.Name):
			return fmt.Errorf("claim %s is not there, and it is not known yet what it is made from", claim.Name)
		case apierrors.IsNotFound(err):
			if err := c.Create(ctx, claim); err != nil {
				return fmt.Errorf("create claim %s: %w", claim.Name, err)
			}
		case err != nil:
			return fmt.Errorf("get claim %s: %w", claim.Name, err)
		case existing.DeletionTimestamp != nil:
			return fmt.Errorf("claim %s is being deleted; its pod can run when it is gone", claim.Name)
		case slices.ContainsFunc(existing.OwnerReferences, func(o metav1.OwnerReference) bool { return owner.IsEarlier(&o) }):
			return fmt.Errorf("claim %s is owned by an earlier %s %s and will be deleted; its pod can run when it is gone",
				claim.Name, owner.Kind.Kind, owner.GetName())
		case owner.OwnsClaims && ownedByPod(existing):
			return fmt.Errorf("claim %s is owned by an earlier pod and will be deleted", claim.Name)
		}
	}
	return nil
}

// makesClaims reports whether claims of a pod are to be made.
func makesClaims(ctx context.Context, reader client.Reader, pod NewPod) (bool, error) {
	for _, claim := range pod.Claims {
		err := reader.Get(ctx, client.ObjectKeyFromObject(claim), &corev1.PersistentVolumeClaim{})
		if client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("get claim %s: %w", claim.Name, err)
		}
		if err != nil && (pod.MayMake == nil || pod.MayMake(claim.Name)) {
			return true, nil
		}
	}
	return false, nil
}

// ownedByPod reports whether a claim goes with a pod.
func ownedByPod(claim *corev1.PersistentVolumeClaim) bool {
	controller := metav1.GetControllerOf(claim)
	return controller != nil && controller.Kind == "Pod"
}
