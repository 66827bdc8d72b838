// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/insitu-dev/insitu/controllers/history"
	"github.com/insitu-dev/insitu/controllers/workload"
)

// ContentOf returns what the revision of the templates in the spec holds.
func (r *Round) ContentOf(template corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) (history.Content, error) {
	content, err := history.NewContent(template, claims)
	if err != nil {
		return content, workload.SpecError{Err: fmt.Errorf("read templates of %s: %w", r.Owner, err)}
	}
	return content, nil
}

// EnsureRevisions reads the history of a workload, and makes sure that what its spec says now
// has its revision in it. labels are those of its template, and status is what was reported last.
func (c *Core) EnsureRevisions(ctx context.Context, r *Round, content history.Content, labels map[string]string, status Status) error {
	owner := history.Owner{
		Object: r.Owner.Object, Kind: r.Owner.Kind, Labels: labels, ByHash: r.Owner.MarksByHash,
		Collisions: ptr.Deref(*status.CollisionCount, 0),
	}
	var err error
	r.Revisions, err = workload.EnsureRevisions(ctx, c.Keeper, owner, content, *status.CurrentRevision)
	return err
}

// TruncateHistory deletes revisions beyond the limit that no pod and no status needs any more.
// That one stays does not keep the workload from being reported.
func (c *Core) TruncateHistory(ctx context.Context, r *Round, limit int32) {
	r.Updating.Add(r.Revisions.Truncate(ctx, c.Keeper, r.Pods, int(limit)))
}
