// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package statefulset

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// identityLabels returns the labels that say which pod of its set a pod is.
// Services that lead to a single pod select by them.
func identityLabels(set string, ordinal int) map[string]string {
	return map[string]string{
		appsv1beta1.PodNameLabel:  podName(set, ordinal),
		appsv1beta1.PodIndexLabel: strconv.Itoa(ordinal),
	}
}

// repairIdentity sets labels of the identity again that a pod has lost, or that
// are wrong. A pod that never had an index is left without: it was made by a
// release before the index was a label, and taking it over costs no write.
//
// It comes before everything else that is done to pods, which then is decided on
// what the API server answered.
func (r *Reconciler) repairIdentity(ctx context.Context, s *scope) error {
	for _, m := range s.members {
		wrong := wrongIdentity(s.set.Name, m)
		if len(wrong) == 0 || m.DeletionTimestamp != nil {
			continue
		}
		repaired := workload.PodReference(m.Pod)
		err := workload.PatchMetadata(ctx, r.Client, m.Pod, repaired, map[string]any{"labels": wrong})
		switch {
		case err == nil:
			m.Pod = repaired
		case client.IgnoreNotFound(err) != nil:
			s.Updating.Add(fmt.Errorf("label pod %s/%s with its identity: %w", m.Namespace, m.Name, err))
		}
	}
	return nil
}

// wrongIdentity returns the labels of the identity that are to be set again.
func wrongIdentity(set string, m *member) map[string]string {
	wrong := identityLabels(set, m.ordinal)
	maps.DeleteFunc(wrong, func(key, value string) bool {
		current, exists := m.Labels[key]
		return current == value || !exists && key == appsv1beta1.PodIndexLabel
	})
	return wrong
}
