// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

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
	// It is asked of drained pods only, which are few, so it is read where it is certain.
	owner, err := ownWorkload(ctx, r.live, pod)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("end the drain of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	isUpdated := owner != nil
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
