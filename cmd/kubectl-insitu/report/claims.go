// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/insitu-dev/insitu/volumes"
)

// claims returns what is told of the claims that a pod uses.
func claims(f Facts, pod *corev1.Pod, plan planned) []Claim {
	var found []Claim
	for _, volume := range pod.Spec.Volumes {
		if volume.PersistentVolumeClaim == nil {
			continue
		}
		name := volume.PersistentVolumeClaim.ClaimName
		told := Claim{Name: name, Phase: "Missing"}
		if claim := f.Claims[name]; claim != nil {
			told = newClaim(claim)
		}
		if name == volumes.ClaimName(volume.Name, pod.Name) {
			told.Template = volume.Name
			told.want(f)
		}
		i := slices.IndexFunc(plan.claims, func(step volumes.Step) bool { return step.Claim != nil && step.Claim.Name == name })
		if i >= 0 && plan.claims[i].State != volumes.Settled {
			told.Reason, told.Message = plan.claims[i].Reason, plan.claims[i].Message
		}
		found = append(found, told)
	}
	return found
}

func newClaim(claim *corev1.PersistentVolumeClaim) Claim {
	told := Claim{Name: claim.Name, Phase: string(claim.Status.Phase), Class: volumehelpers.GetPersistentVolumeClaimClass(claim)}
	if size, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
		told.Capacity = size.String()
	}
	if size, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
		told.Requested = size.String()
	}
	return told
}

// want notes the size that the template asks for, where that is more than the claim has.
func (c *Claim) want(f Facts) {
	claim := f.Claims[c.Name]
	for _, template := range f.view.ClaimTemplates {
		if template.Name != c.Template || claim == nil {
			continue
		}
		wanted, has := template.Spec.Resources.Requests[corev1.ResourceStorage], claim.Status.Capacity[corev1.ResourceStorage]
		if wanted.Cmp(has) > 0 {
			c.Wanted = wanted.String()
		}
	}
}
