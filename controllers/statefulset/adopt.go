// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"

	corev1 "k8s.io/api/core/v1"
)

// isOwn reports whether a pod has a name that the set gives.
func (s *scope) isOwn(pod *corev1.Pod) bool {
	_, is := ordinalOf(s.set.Name, pod.Name)
	return is
}

// adopt takes over pods and revisions without a controller that have the labels
// and the name of those of the set.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	left, err := r.Adopt(ctx, &s.Round, s.set.Spec.Selector, s.isOwn)
	s.gated = s.gated.Union(left) // their names are taken
	return err
}
