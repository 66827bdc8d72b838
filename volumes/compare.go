// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"
)

// Match says how far a claim is what its template says.
type Match struct {
	// Compatible: its spec is what the template says, or larger.
	Compatible bool
	// Ready: it is compatible, and so is the volume.
	Ready bool
}

// Compare tells how far a claim is what its template says. Names, labels and
// annotations do not count, nor what matters at the creation of a claim only. A
// template that names no class takes what the cluster's default gave.
func Compare(claim, template *corev1.PersistentVolumeClaim) Match {
	if claim.DeletionTimestamp != nil || fixedDifference(claim, template) != nil {
		return Match{}
	}
	want := sizeOf(template.Spec.Resources.Requests)
	hasRoom := isAtLeast(sizeOf(claim.Status.Capacity), want)
	class := attributesClass(template)
	if !hasRoom && !isAtLeast(sizeOf(claim.Spec.Resources.Requests), want) || class != "" && attributesClass(claim) != class {
		return Match{}
	}
	hasAttributes := class == "" || ptr.Deref(claim.Status.CurrentVolumeAttributesClassName, "") == class
	return Match{Compatible: true, Ready: hasRoom && hasAttributes}
}

// ClaimName returns the name of the claim that a pod has from a template:
// data-sample-0.
func ClaimName(template, pod string) string {
	return template + "-" + pod
}

// NeedsRecreate reports whether a claim is what Kubernetes does not change into what its
// template says.
func NeedsRecreate(claim, template *corev1.PersistentVolumeClaim) bool {
	return fixedDifference(claim, template) != nil
}

// FixedDifference says what Kubernetes does not change in a claim and its template says
// otherwise; empty if there is nothing.
func FixedDifference(claim, template *corev1.PersistentVolumeClaim) string {
	if err := fixedDifference(claim, template); err != nil {
		return err.Error()
	}
	return ""
}

func sizeOf(resources corev1.ResourceList) resource.Quantity {
	return resources[corev1.ResourceStorage]
}

func isAtLeast(size, want resource.Quantity) bool {
	return size.Cmp(want) >= 0
}

// attributesClass returns the VolumeAttributesClass that a claim or template names;
// empty if it names none.
func attributesClass(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
}

// fixedDifference returns what Kubernetes never changes in a claim and the template
// says otherwise; nil if there is nothing.
func fixedDifference(claim, template *corev1.PersistentVolumeClaim) error {
	has, wants := volumehelpers.GetPersistentVolumeClaimClass(claim), volumehelpers.GetPersistentVolumeClaimClass(template)
	// A template that asks for no class by an empty name means that.
	if NamesClass(template) && has != wants {
		return fmt.Errorf("its storage class is %q, the template says %q", has, wants)
	}
	hasMode := ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	if wants := ptr.Deref(template.Spec.VolumeMode, corev1.PersistentVolumeFilesystem); hasMode != wants {
		return fmt.Errorf("its volume mode is %s, the template says %s", hasMode, wants)
	}
	if !sets.New(claim.Spec.AccessModes...).Equal(sets.New(template.Spec.AccessModes...)) {
		return fmt.Errorf("its access modes are %v, the template says %v", claim.Spec.AccessModes, template.Spec.AccessModes)
	}
	return nil
}

// NamesClass reports whether a template says which storage class it wants; an empty name
// is one.
func NamesClass(template *corev1.PersistentVolumeClaim) bool {
	_, byAnnotation := template.Annotations[corev1.BetaStorageClassAnnotation]
	return byAnnotation || template.Spec.StorageClassName != nil
}
