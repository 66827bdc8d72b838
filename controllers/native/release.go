// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/apis/native"
	"github.com/insitu-dev/insitu/controllers/executor"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// Reasons of events of workloads.
const (
	// reasonReleased: Kubernetes recreates the pods.
	reasonReleased = "ReleasedForRecreation"
	// reasonUpdated: all pods are updated.
	reasonUpdated = "UpdatedInPlace"
	// reasonHoldLost: something else has ended the hold.
	reasonHoldLost = "HoldLost"
	// reasonInvalidOptions: a label or an annotation is not as accepted.
	reasonInvalidOptions = "InvalidOptions"
	// reasonStalled: the API server refuses what has to be written beside the pods.
	reasonStalled = "Stalled"
	// reasonHoldTimedOut: the update made no progress in place for its deadline, and
	// Kubernetes goes on.
	reasonHoldTimedOut = "HoldTimedOut"
	// reasonDeadline: no pod was updated for progressDeadlineSeconds.
	reasonDeadline = "ProgressDeadlineExceeded"
)

// actionRelease is what the operator does, in events.
const actionRelease = "Release"

func recreated(s *scope, why string) *ending {
	return &ending{corev1.EventTypeNormal, reasonReleased, "not in place: " + why + "; Kubernetes recreates the pods of " + s.Owner.String()}
}

// undrained is the end of a hold whose pods cannot be taken out of service.
func undrained(s *scope, why string) *ending {
	end := recreated(s, why)
	end.eventType, end.reason = corev1.EventTypeWarning, inplace.ReasonCannotDrain
	return end
}

// unreadable is the end of a hold whose options are not as accepted.
func unreadable(s *scope) *ending {
	return &ending{
		corev1.EventTypeWarning, reasonInvalidOptions,
		fmt.Sprintf("%s; so nothing is updated in place, and Kubernetes recreates the pods of %s", s.invalid, s.Owner),
	}
}

func updated(s *scope) *ending {
	if len(s.pods) == 0 {
		return &ending{corev1.EventTypeNormal, reasonUpdated, "there are no pods to update"}
	}
	count := 0
	for i, pod := range s.Plan.Pods {
		if pod.Updated && !s.isOfOther(i) {
			count++
		}
	}
	return &ending{corev1.EventTypeNormal, reasonUpdated, fmt.Sprintf("%s revision %s", inplace.PodsThat(count, "runs", "run"), s.target.Name)}
}

func lost(s *scope) *ending {
	return &ending{
		corev1.EventTypeWarning, reasonHoldLost,
		"the spec does not hold " + s.Owner.String() + " any more, though its label " + native.HeldLabel +
			" says so: Kubernetes goes on. Are the admission policies of Insitu installed?",
	}
}

// release ends the hold, if the workload still is as it was read.
func (r *Reconciler) release(ctx context.Context, s *scope) error {
	fields := map[string]any{"labels": map[string]any{native.HeldLabel: native.Release}}
	if _, ok := s.object.GetAnnotations()[native.PreviousRevisionAnnotation]; ok {
		fields["annotations"] = map[string]any{native.PreviousRevisionAnnotation: nil}
	}
	if err := r.patchMetadata(ctx, s, fields); err != nil {
		return fmt.Errorf("release %s: %w", s.Owner, err)
	}
	r.metrics.Released(s.ending.reason)
	r.recorder.Eventf(s.object, nil, s.ending.eventType, s.ending.reason, actionRelease, "%s", executor.Shorten(s.ending.note))
	if s.object.GetLabels()[native.HeldLabel] == "" {
		return nil
	}
	return r.unhold(ctx, s)
}

// unhold writes what a policy does to a workload that is to be released: the cluster
// has none.
func (r *Reconciler) unhold(ctx context.Context, s *scope) error {
	patch := map[string]any{
		"metadata": map[string]any{
			"uid": s.object.GetUID(), "resourceVersion": s.object.GetResourceVersion(),
			"labels": map[string]any{native.HeldLabel: nil},
			"annotations": map[string]any{
				native.HeldPartitionAnnotation: nil, native.HeldMaxUnavailableAnnotation: nil, native.HeldMaxSurgeAnnotation: nil,
				native.HeldObservedGenerationAnnotation: nil,
				native.HeldMinReadySecondsAnnotation:    nil, native.HeldProgressDeadlineSecondsAnnotation: nil, native.KeeperAnnotation: nil,
				native.StatusAnnotation: nil, native.PreviousRevisionAnnotation: nil,
			},
		},
	}
	if s.spec.isHeld || tellsOfHold(s.object) {
		patch["spec"] = s.unheld()
	}
	body, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	if err := r.client.Patch(ctx, s.object, client.RawPatch(types.MergePatchType, body)); err != nil {
		return fmt.Errorf("restore %s: %w", s.Owner, err)
	}
	return nil
}

// patchMetadata patches metadata of the workload if it still is as it was read. It
// becomes what the API server answers.
func (r *Reconciler) patchMetadata(ctx context.Context, s *scope, fields map[string]any) error {
	return workloads.PatchMetadata(ctx, r.client, s.object, s.object, fields)
}
