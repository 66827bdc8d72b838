// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/volumes"
)

// claimChange is one row of the table of claims: a change of a claim template.
type claimChange struct {
	words string
	make  func(template *corev1.PersistentVolumeClaimSpec)
	// rigid is true where the storage class does not allow expansion.
	rigid bool
	// unrestorable is true where no snapshot is restored to what the template asks for.
	unrestorable bool
}

var claimChanges = []claimChange{
	{words: "more storage", make: func(s *corev1.PersistentVolumeClaimSpec) { s.Resources = storage("2Gi") }},
	{
		words: "more storage, of a class without `allowVolumeExpansion`", rigid: true,
		make: func(s *corev1.PersistentVolumeClaimSpec) { s.Resources = storage("2Gi") },
	},
	{words: "less storage", make: func(s *corev1.PersistentVolumeClaimSpec) { s.Resources = storage("512Mi") }},
	{
		words: "`volumeAttributesClassName`",
		make:  func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeAttributesClassName = ptr.To("gold") },
	},
	{words: "`storageClassName`, of the same driver", make: func(s *corev1.PersistentVolumeClaimSpec) { s.StorageClassName = ptr.To("other") }},
	{
		words: "`accessModes`",
		make: func(s *corev1.PersistentVolumeClaimSpec) {
			s.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		},
	},
	{
		words: "`volumeMode`, or a class of another driver", unrestorable: true,
		make: func(s *corev1.PersistentVolumeClaimSpec) { s.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) },
	},
}

// claimTable returns the table of changes of claims, in place and by recreation.
func claimTable() (string, error) {
	var text strings.Builder
	text.WriteString("| What changes in a claim template | `OnPodRollingUpdate` | `Recreate` | Reason |\n|---|---|---|---|\n")
	for _, c := range claimChanges {
		claim, template := boundClaim(), boundClaim()
		c.make(&template.Spec)
		step := volumes.Next(volumes.Facts{
			Claim: claim, Template: template,
			StorageClass: &storagev1.StorageClass{AllowVolumeExpansion: ptr.To(!c.rigid)},
			Pod:          &volumes.Pod{UID: "pod", Ready: true},
		}, now)
		inPlace, err := claimWords(step.State)
		if err != nil {
			return "", fmt.Errorf("judge the change of %s: %w", c.words, err)
		}
		recreated, reason := inPlace, ""
		switch {
		case volumes.NeedsRecreate(claim, template) && c.unrestorable:
			recreated = "the claim stays as it is, or starts empty with `withoutSnapshot: Empty`"
		case volumes.NeedsRecreate(claim, template):
			recreated = "recreated from its own snapshot"
		}
		if step.State == volumes.Blocked {
			reason = code(step.Reason)
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", c.words, inPlace, recreated, reason)
	}

	return text.String(), nil
}

// claimWords says what happens to a claim whose next step has a state.
func claimWords(state volumes.State) (string, error) {
	switch state {
	case volumes.Changing:
		return "in place, before the pod is changed", nil
	case volumes.Settled:
		return "the claim keeps what it has; new ones are made so", nil
	case volumes.Blocked:
		return "the claim stays as it is", nil
	case volumes.Waiting, volumes.UnderWay, volumes.Detaching:
	}

	return "", fmt.Errorf("found state %s of a bound claim: want one of %s, %s, %s", state, volumes.Changing, volumes.Settled, volumes.Blocked)
}

// boundClaim returns a claim that has its volume.
func boundClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data-web-0", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   storage("1Gi"), StorageClassName: ptr.To("standard"), VolumeName: "volume-1",
			VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem),
		},
		Status: corev1.PersistentVolumeClaimStatus{
			Phase: corev1.ClaimBound, Capacity: storage("1Gi").Requests,
		},
	}
}

func storage(size string) corev1.VolumeResourceRequirements {
	return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}}
}
