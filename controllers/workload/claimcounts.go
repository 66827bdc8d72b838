// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/volumes"
)

// ClaimCounts counts the claims of a workload on their way to their templates.
type ClaimCounts struct {
	// Status has an entry for each template.
	Status []appsv1beta1.VolumeClaimStatus
	// Moving claims are being changed, or wait for their turn; Blocked ones do not
	// follow their template.
	Moving, Blocked int
	// Message says of one blocked claim why.
	Message string
}

// Count counts the claims of pods that were read. steps holds those of the pods whose
// claims are to follow, by the names of the pods.
func (c *Claims) Count(templates []corev1.PersistentVolumeClaim, pods []string, steps map[string]volumes.Claims) ClaimCounts {
	counts := ClaimCounts{}
	states := map[string]volumes.Step{}
	for _, pod := range pods {
		for _, step := range steps[pod] {
			if step.Claim != nil {
				states[step.Claim.Name] = step
				counts.add(step)
			}
		}
	}
	for i := range templates {
		status := appsv1beta1.VolumeClaimStatus{VolumeClaimName: templates[i].Name}
		for _, pod := range pods {
			name := volumes.ClaimName(templates[i].Name, pod)
			if claim := c.byName[name]; claim != nil {
				countClaim(&status, volumes.Compare(claim, &templates[i]), states[name])
			}
		}
		counts.Status = append(counts.Status, status)
	}
	return counts
}

func (c *ClaimCounts) add(step volumes.Step) {
	switch {
	case step.State == volumes.Blocked, step.Refused != "":
		c.Blocked++
		if c.Message == "" {
			c.Message = cmp.Or(step.Refused, step.Message)
		}
	case step.State == volumes.Changing, step.State == volumes.UnderWay, step.State == volumes.Detaching:
		c.Moving++
	}
}

func countClaim(status *appsv1beta1.VolumeClaimStatus, match volumes.Match, step volumes.Step) {
	if match.Compatible {
		status.CompatibleReplicas++
	}
	if match.Ready {
		status.CompatibleReadyReplicas++
	}
	switch {
	case step.State == volumes.Blocked, step.Refused != "":
		status.BlockedReplicas++
	case step.State == volumes.UnderWay, step.State == volumes.Detaching:
		status.UpdatingReplicas++
	}
}
