// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
)

// OwnerChange is a write that makes the owners of a claim those it should have.
type OwnerChange struct {
	Claim *corev1.PersistentVolumeClaim
	// Pod is the name of the pod that the claim is for, empty if there is none.
	Pod string
	// References are entries of a strategic merge patch.
	References []any
	// Gates: the pod is not to be deleted before this is written.
	Gates bool
}

// claimsOf is under what is known of claims whose owners could not be set, of a workload.
type claimsOf types.UID

// SetClaimOwners writes changes, some at the same time, and returns the names of the pods that
// are gated by those that it has not written, and why: after the third error, none is written.
// Claims that failed before are tried last: they do not keep the others from their owners.
func (p *Pods) SetClaimOwners(ctx context.Context, live client.Reader, owner Owner, changes []OwnerChange) (sets.Set[string], Failures, error) {
	gated, failures := sets.New[string](), Failures{}
	if len(changes) == 0 {
		return gated, failures, nil
	}
	if err := owner.Confirm(ctx, live); err != nil {
		return gated, failures, err
	}
	gate := func(unwritten ...OwnerChange) {
		for _, change := range unwritten {
			if change.Gates {
				gated.Insert(change.Pod)
			}
		}
	}
	nameOf := func(change OwnerChange) string { return change.Claim.Name }
	before := failedBefore(p.failed, claimsOf(owner.GetUID()), changes, nameOf)
	changes = inTurn(changes, before, nameOf)
	for len(changes) > 0 && len(failures.Errs) < MaxFailures {
		batch := changes[:min(len(changes), p.Parallelism)]
		changes = changes[len(batch):]
		errs := slices.Repeat([]error{context.Canceled}, len(batch)) // what is left out when the context ends
		workqueue.ParallelizeUntil(ctx, len(batch), len(batch), func(i int) {
			errs[i] = PatchOwners(ctx, p.Client, batch[i].Claim, batch[i].References...)
		})
		for i, err := range errs {
			if client.IgnoreNotFound(err) == nil {
				continue
			}
			claim := batch[i].Claim
			before.Insert(claim.Name)
			if !apierrors.IsConflict(err) {
				p.Recorder.Eventf(owner.Object, claim, corev1.EventTypeWarning, appsv1beta1.ReasonFailedUpdateClaim, ActionUpdate,
					"set the owners of claim %s: %v", claim.Name, err)
			}
			failures.Add(fmt.Errorf("set the owners of claim %s/%s: %w", claim.Namespace, claim.Name, err))
			gate(batch[i])
		}
	}
	gate(changes...)
	p.failed.Add(claimsOf(owner.GetUID()), before)
	return gated, failures, nil
}
