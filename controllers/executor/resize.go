// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/inplace"
	"github.com/insitu-dev/insitu/resize"
)

// Causes that the API server gives when it refuses a resize because of the node,
// since Kubernetes 1.36.
const (
	causeNodeCapacity        metav1.CauseType = "NodeCapacity"
	causeUnsupportedPlatform metav1.CauseType = "UnsupportedPlatform"
)

// resizeError is an error of a write to pods/resize.
type resizeError struct {
	error
}

func (e resizeError) Unwrap() error { return e.error }

// unfollowedError is why what follows the sizes of a pod was not written. The sizes
// were.
type unfollowedError struct {
	error
}

func (e unfollowedError) Unwrap() error { return e.error }

// resize writes the sizes of a pod and, right after it, what follows them. If that
// fails the pod is what its spec says, and the next plan goes on from there.
func (e *Executor) resize(ctx context.Context, move inplace.Move) error {
	body, err := inplace.ResizePatch(move.Pod, move.Step)
	if err != nil {
		return err
	}
	answer, err := e.patchSizes(ctx, move.Pod, body)
	if err != nil {
		return fmt.Errorf("resize pod %s/%s in place: %w", move.Pod.Namespace, move.Pod.Name, err)
	}
	step := inplace.WithAnswer(move.Pod, move.Step, answer, e.clock.Now())
	if step.Record == nil {
		return nil
	}
	pod := *move.Pod
	pod.ResourceVersion = answer.ResourceVersion
	if err := e.patch(ctx, inplace.Move{Pod: &pod, Step: step}); err != nil {
		return unfollowedError{err}
	}
	return nil
}

// dryRunResize lets the API server judge all the sizes that a move leads to.
func (e *Executor) dryRunResize(ctx context.Context, move inplace.Move) error {
	body, resizes, err := inplace.TrialResize(move.Pod, move.Step)
	if err != nil || !resizes {
		return err
	}
	_, err = e.patchSizes(ctx, move.Pod, body, client.DryRunAll)
	if err != nil && !IsNoDryRun(err) {
		return fmt.Errorf("try to resize pod %s/%s in place: %w", move.Pod.Namespace, move.Pod.Name, err)
	}
	return nil
}

// patchSizes writes to pods/resize and returns the pod as the server has it then.
func (e *Executor) patchSizes(ctx context.Context, pod *corev1.Pod, body []byte, options ...client.SubResourcePatchOption) (*corev1.Pod, error) {
	answer := reference(pod)
	options = append(options, client.FieldOwner(resize.FieldManager))
	err := e.client.SubResource(resize.Subresource).Patch(ctx, answer, client.RawPatch(types.StrategicMergePatchType, body), options...)
	if err != nil {
		return nil, resizeError{err}
	}
	return answer, nil
}

// deniedReason returns the reason under which a refusal of the API server is told:
// whether it is one of sizes, and whether of the node.
func deniedReason(err error) string {
	status := apierrors.APIStatus(nil)
	switch {
	case !errors.As(err, &resizeError{}) || !errors.As(err, &status) || isForbiddenToUs(err):
		return inplace.ReasonAdmissionDenied
	case status.Status().Details != nil && slices.ContainsFunc(status.Status().Details.Causes, isOfNode):
		return inplace.ReasonResizeInfeasible
	default:
		return inplace.ReasonResizeDenied
	}
}

// isForbiddenToUs reports whether the operator lacks a permission: that is no reason
// to recreate pods. The server has no code of its own for it.
func isForbiddenToUs(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot patch resource")
}

func isOfNode(cause metav1.StatusCause) bool {
	return cause.Type == causeNodeCapacity || cause.Type == causeUnsupportedPlatform
}

// refusedVerb says what was refused.
func refusedVerb(err error) string {
	if errors.As(err, &resizeError{}) {
		return "resize"
	}
	return "update"
}

// unfollowedEvent returns the event for a move that came to nothing because the pod
// had changed: nil, unless the pod got its sizes before. The kubelet is quick to
// report them, and the label that follows is written by another move.
func unfollowedEvent(revision string, step inplace.Step, err error) *event {
	if !errors.As(err, &unfollowedError{}) || len(step.Change.Images) > 0 {
		return nil
	}
	return resizeEvent(revision, step)
}

// resizeEvent returns the event for sizes that were written. Where containers get
// another image in the same moment, that is what is told.
func resizeEvent(revision string, step inplace.Step) *event {
	reason := appsv1beta1.ReasonResizingPodInPlace
	if len(step.Change.Grow) == 0 && len(step.Change.Images) > 0 {
		reason = appsv1beta1.ReasonUpdatingPodInPlace
	}
	return &event{corev1.EventTypeNormal, reason, actionUpdateInPlace, "resize for revision " + revision + " in place: " + step.Message}
}
