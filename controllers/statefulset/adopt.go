// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/insitu-dev/insitu/controllers/workload"
)

// adopt takes over pods and revisions without a controller that have the labels
// and the name of those of the set.
func (r *Reconciler) adopt(ctx context.Context, s *scope) error {
	var err error
	if s.selector, err = metav1.LabelSelectorAsSelector(s.set.Spec.Selector); err != nil {
		return workload.SpecError{Err: fmt.Errorf("read spec.selector of %s: %w", s.Owner, err)}
	}
	orphans, err := workload.ListOrphans(ctx, r.Client, r.Live, s.set, workload.Own{Selector: s.selector, IsPod: func(pod *corev1.Pod) bool {
		_, ours := ordinalOf(s.set.Name, pod.Name)
		return ours
	}})
	if err != nil {
		return err
	}
	left, failures, err := workload.Adopt(ctx, r.Client, r.Live, s.Owner, orphans)
	s.gated, s.Updating = s.gated.Union(left), failures // their names are taken
	return err
}

// release releases the strays. They were not observed as pods of the set, so none
// of them is counted or changed, also if its release fails.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	s.Updating.Join(workload.Release(ctx, r.Client, s.Owner, s.Strays))
	return nil
}
