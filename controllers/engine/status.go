// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Status points to the fields that the statuses of all kinds have.
type Status struct {
	ObservedGeneration *int64
	// UpdateRevision and CurrentRevision are the names of these revisions, CollisionCount tells
	// the names of revisions that say something else apart.
	UpdateRevision, CurrentRevision *string
	CollisionCount                  **int32
	Resize                          **appsv1beta1.ResizeStatus
	Blockers                        *[]appsv1beta1.Blocker
}

// PatchStatus writes the status of the workload of a round if it differs from before, and tells
// in events what is new in it. status points into the workload; set sets the fields that only this
// kind has. failure is what ended the round.
func (c *Core) PatchStatus(ctx context.Context, r *Round, status Status, failure error, set func()) error {
	object, blockers := r.Owner.Object, *status.Blockers
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%s has no metadata", r.Owner)
	}
	if r.Planned {
		*status.UpdateRevision, *status.CurrentRevision = r.Revisions.Update.Name(), r.Revisions.Current.Name()
		if r.Revisions.Collisions > 0 {
			*status.CollisionCount = ptr.To(r.Revisions.Collisions)
		}
		*status.Resize = workload.ResizeStatus(r.Plan)
		*status.Blockers = workload.Blockers(r.Plan, r.Result.Failed, blockers, r.Now)
	}
	// That nothing can come of a spec is an observation, too: who compares generations
	// would wait for ever.
	if workload.IsInvalidSpec(failure) || r.Planned && failure == nil {
		*status.ObservedGeneration = object.GetGeneration()
	}
	set()
	if differs, err := workload.PatchStatus(ctx, c.Client, before, object); !differs || err != nil {
		return err
	}
	workload.ReportStuck(c.Recorder, object, r.Plan, blockers, *status.Blockers)
	if !r.Planned {
		workload.ReportStall(c.Recorder, object, failure)
	}
	return nil
}

// Counts counts pods that are not being deleted.
type Counts struct {
	Replicas, Ready, Available              int32
	Updated, UpdatedReady, UpdatedAvailable int32
	// InPlace is how many of Updated were updated in place.
	InPlace int32
}

// Count counts pods by what is planned for them. One that is between two revisions is not Updated.
func Count(pods []inplace.PodState) Counts {
	c := Counts{}
	for _, pod := range pods {
		if pod.Pod.DeletionTimestamp != nil {
			continue
		}
		c.Replicas++
		add(&c.Ready, pod.Ready)
		add(&c.Available, pod.Available)
		add(&c.Updated, pod.Updated)
		add(&c.UpdatedReady, pod.Updated && pod.Ready)
		add(&c.UpdatedAvailable, pod.Updated && pod.Available)
		add(&c.InPlace, pod.Updated && inplace.UpdatedInPlace(pod.Pod))
	}
	return c
}

func add(count *int32, counts bool) {
	if counts {
		*count++
	}
}
