// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	appsv1 "k8s.io/api/apps/v1"
)

// IsPausedByUser reports whether the pause of a Deployment is its user's: a hold is a pause
// only where it makes no pod more.
func IsPausedByUser(d *appsv1.Deployment) bool {
	return d.Spec.Paused && (d.Labels[HeldLabel] == "" || d.Spec.MinReadySeconds == HeldMinReadySeconds)
}
