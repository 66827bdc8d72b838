// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// endDrain ends the drain of a pod that nothing updates: its workload is gone, or was never
// ours. The controllers of our own kinds end their own drains; of their pods, it takes away
// only the entries that Insitu does not know.
func (r *Reconciler) endDrain(ctx context.Context, pod *corev1.Pod) (ctrl.Result, error) {
	if !inplace.HasDrainedLabel(pod) || pod.DeletionTimestamp != nil || inplace.HasEnded(pod) {
		return ctrl.Result{}, nil
	}
	isUpdated, err := r.isOfOurs(ctx, pod)
	if err != nil {
		return ctrl.Result{}, err
	}
	if !isUpdated && inplace.IsMarkedNotReady(pod) && !inplace.Observe(pod, r.clock.Now()).Complete {
		return ctrl.Result{RequeueAfter: unfinishedDelay}, nil
	}
	var requeue workload.Requeue
	ended, err := executor.EndDrain(ctx, r.client, pod, isUpdated, r.clock.Now())
	if ended {
		ctrl.LoggerFrom(ctx).Info("Ended the drain of a pod that no controller updates")
	}
	if err != nil && workload.IgnoreConflict(err) == nil {
		requeue.AfterConflict()
	}
	return requeue.Result(), workload.IgnoreConflict(err)
}

// isOfOurs reports whether the controller of a pod is a workload of our own kinds that is
// there. It is asked of drained pods only, which are few, so it is read where it is certain.
func (r *Reconciler) isOfOurs(ctx context.Context, pod *corev1.Pod) (bool, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return false, nil
	}
	kind := appsv1beta1.GroupVersion.WithKind(owner.Kind)
	if !workload.IsKind(owner, kind) || !r.client.Scheme().Recognizes(kind) {
		return false, nil
	}
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	found, err := readOwner(ctx, r.live, pod.Namespace, owner, object)
	if err != nil {
		return false, fmt.Errorf("end the drain of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return found, nil
}
