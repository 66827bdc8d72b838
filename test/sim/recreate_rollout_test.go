// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"k8s.io/utils/ptr"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// withRecreation gives the pods claims of 1Gi of class standard, which are recreated
// where they cannot change. What was replaced goes after a minute.
func withRecreation(change func(*settings)) func(*settings) {
	return withClaims("standard", func(s *settings) {
		s.maxUnavailable = 1
		s.volumes.attaches = true
		s.volumes.strategy = appsv1beta1.VolumeClaimUpdateStrategy{
			Type: appsv1beta1.RecreateVolumeClaimUpdateStrategyType,
			Recreate: &appsv1beta1.VolumeClaimRecreateStrategy{
				OldVolume: appsv1beta1.DeleteRecreateRetention, Snapshot: appsv1beta1.DeleteRecreateRetention, HoldSeconds: ptr.To[int32](60),
				TimeoutSeconds: ptr.To[int32](120),
			},
		}
		if change != nil {
			change(s)
		}
	})
}

// recreating changes the parameters of claims that are recreated.
func recreating(change func(*appsv1beta1.VolumeClaimRecreateStrategy)) func(*settings) {
	return withRecreation(func(s *settings) { change(s.volumes.strategy.Recreate) })
}

// claimsOfClass asks for claims of another class.
func claimsOfClass(class string) func(*World) {
	return claimsWith(func(w *claimWish) { w.class = class })
}
