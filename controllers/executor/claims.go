// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/volumes"
)

// rememberedClaims is for how many claims refusals are kept.
const rememberedClaims = 16384

// claimMemory keeps what the API server refused to change in claims, so that it is
// asked less and less often. What is lost is asked again.
type claimMemory struct {
	refusals *lru.Cache
}

func newClaimMemory() claimMemory {
	return claimMemory{refusals: lru.New(rememberedClaims)}
}

// claimRefusals are what the API server said of a claim, by patch.
type claimRefusals map[string]claimRefusal

// claimRefusal is what it said to one patch last, and how often in a row.
type claimRefusal struct {
	volumes.Refusal
	times int
}

// ClaimRefusals returns what the API server said when it refused to change a claim.
func (e *Executor) ClaimRefusals(claim *corev1.PersistentVolumeClaim) []volumes.Refusal {
	var refusals []volumes.Refusal
	for _, refused := range e.claims.of(claim) {
		refusals = append(refusals, refused.Refusal)
	}
	return refusals
}

func (m claimMemory) of(claim *corev1.PersistentVolumeClaim) claimRefusals {
	known, _ := m.refusals.Get(claim.UID)
	refusals, _ := known.(claimRefusals)
	return refusals
}

// learn notes what the API server said to a patch of a claim.
func (m claimMemory) learn(claim *corev1.PersistentVolumeClaim, patch volumes.Patch, err error, now time.Time) {
	key, known := patch.Key(), maps.Clone(m.of(claim))
	switch {
	case err == nil && known != nil:
		delete(known, key)
		m.refusals.Add(claim.UID, known)
		return
	case !IsRefusal(err):
		return // the claim has changed meanwhile, or the server could not judge
	}
	if known == nil {
		known = claimRefusals{}
	}
	message, _, _ := strings.Cut(ServerWords(err), "\n") // a difference of specs follows
	refused := claimRefusal{Refusal: volumes.Refusal{Key: key, Message: Shorten(message)}}
	if before, ok := known[key]; ok {
		refused.times = before.times + 1
	}
	refused.Until = now.Add(refusalPeriod << min(refused.times, maxDoublings))
	known[key] = refused
	m.refusals.Add(claim.UID, known)
}

// changeClaims writes what a step says to the claims of a pod.
func (e *Executor) changeClaims(ctx context.Context, move inplace.Move) error {
	return e.ChangeClaims(ctx, move.Pod, move.Step.Claims)
}

// ChangeClaims writes patches to claims for the sake of an object, which is named in
// their events. A claim that the API server refuses to change does not keep the
// others from being changed: the next plan knows.
func (e *Executor) ChangeClaims(ctx context.Context, owner client.Object, claims volumes.Claims) error {
	var errs []error
	for _, step := range claims {
		if step.Patch.IsEmpty() && apiequality.Semantic.DeepEqual(step.Patch.Record, volumes.RecordOf(step.Claim)) {
			continue // it is noted already
		}
		err := patchClaim(ctx, e.client, step.Claim, step.Patch)
		e.claims.learn(step.Claim, step.Patch, err, e.clock.Now())
		switch {
		case err == nil && !step.Patch.IsEmpty():
			e.recorder.Eventf(step.Claim, owner, corev1.EventTypeNormal, appsv1beta1.ReasonUpdatingClaim, actionUpdateClaim, "%s", step.Message)
		case IsRefusal(err):
			e.recorder.Eventf(step.Claim, owner, corev1.EventTypeWarning, volumes.ReasonClaimRefused, actionUpdateClaim,
				"the API server refuses to change its %s: %s", step.Patch, Shorten(ServerWords(err)))
			err = conflictOf(step.Claim, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// patchClaim writes a patch to a claim, if it still is as it was read.
func patchClaim(ctx context.Context, c client.Client, claim *corev1.PersistentVolumeClaim, patch volumes.Patch) error {
	body, err := patch.Body(claim)
	if err != nil {
		return err
	}
	target := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: claim.Namespace, Name: claim.Name}}
	if err := c.Patch(ctx, target, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("change claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// conflictOf makes a refusal a reason to plan again, which says what was refused.
func conflictOf(claim *corev1.PersistentVolumeClaim, err error) error {
	return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), claim.Name, err)
}
