// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/recreate"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/volumes"
	claims "github.com/insitu-dev/insitu/volumes/recreate"
)

// observeKept finds out what is kept of claims that were recreated. Nothing is kept of a
// set that recreates no claims and has none that was.
func (r *Reconciler) observeKept(ctx context.Context, s *scope, session *recreate.Session) {
	if !s.set.Spec.VolumeClaimUpdateStrategy.Recreates() && !s.hasRecreated() {
		return
	}
	find := func(name string) *corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{}
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: s.set.Namespace, Name: name}, claim); err != nil {
			return nil
		}
		return claim
	}
	var err error
	if s.kept, err = session.Kept(ctx, find, func(claim string) bool { return s.templateOf(claim) != "" }); err != nil {
		s.Updating.Add(fmt.Errorf("see what is kept of recreated claims: %w", err))
		return
	}
	if len(s.kept) > 0 || session.LooksAgain() {
		s.Requeue.Within(recreate.KeptPeriod)
	}
	if s.hasClaim(session.HasGone) {
		s.Requeue.Within(gonePeriod) // its record is to say so
	}
}

// gonePeriod is after how long a claim is looked at of which something is gone that was kept.
const gonePeriod = 10 * time.Second

// hasRecreated reports whether a claim of a wanted pod has an earlier volume.
func (s *scope) hasRecreated() bool {
	return s.hasClaim(func(claim *corev1.PersistentVolumeClaim) bool { return len(volumes.RecordOf(claim).HeldVolumes) > 0 })
}

// hasClaim reports whether something is true of a claim of a wanted pod.
func (s *scope) hasClaim(is func(*corev1.PersistentVolumeClaim) bool) bool {
	for _, ordinal := range s.ordinals {
		for _, template := range s.set.Spec.VolumeClaimTemplates {
			claim := s.claims.Get(volumes.ClaimName(template.Name, podName(s.set.Name, ordinal)))
			if claim != nil && is(claim) {
				return true
			}
		}
	}
	return false
}

// templateOf returns the name of the template that a claim of the set is made from; empty
// if it is not one of the set.
func (s *scope) templateOf(claim string) string {
	for _, template := range s.set.Spec.VolumeClaimTemplates {
		if pod, ok := strings.CutPrefix(claim, template.Name+"-"); ok {
			if _, ok := ordinalOf(s.set.Name, pod); ok {
				return template.Name
			}
		}
	}
	return ""
}

// countKept adds what is kept to the counts of the templates.
func (s *scope) countKept(counts *workload.ClaimCounts) {
	for i := range counts.Status {
		name := counts.Status[i].VolumeClaimName
		counts.Status[i].Kept = claims.Sum(s.kept, func(kept claims.Kept) bool { return s.templateOf(kept.Claim) == name })
	}
}
