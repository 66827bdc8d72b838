// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1beta1 "github.com/insitu-dev/insitu/apis/apps/v1beta1"
	"github.com/insitu-dev/insitu/controllers/executor"
	workloads "github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

// endAllDrains ends the drains of all pods, whatever drains them, and tells of each. A pod
// whose containers are about to be stopped stays out of service until they run again, for as
// long as ReleaseAll waits for a workload.
func endAllDrains(ctx context.Context, c client.Client, namespaces []string, out io.Writer) error {
	e := &drainEnder{client: c, out: out, clock: clock.RealClock{}}
	deadline := e.clock.Now().Add(releasePatience)
	var failed error // of the last try
	err := wait.PollUntilContextCancel(ctx, releasePause, true, func(ctx context.Context) (bool, error) {
		left := 0
		failed = nil
		e.late = !e.clock.Now().Before(deadline)
		for _, namespace := range namespaces {
			waiting, err := e.end(ctx, namespace)
			failed, left = errors.Join(failed, err), left+waiting
		}
		return left == 0 && (failed == nil || e.late), nil
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("end the drains of pods: %w", err)
	}
	return nil
}

// drainEnder ends drains.
type drainEnder struct {
	client client.Client
	out    io.Writer
	clock  clock.PassiveClock
	// late: containers that do not run yet are not waited for any more.
	late bool
}

// end ends the drains in a namespace, and returns how many are left.
func (e *drainEnder) end(ctx context.Context, namespace string) (left int, err error) {
	list := &corev1.PodList{}
	if err := e.client.List(ctx, list, client.InNamespace(namespace), client.HasLabels{appsv1beta1.DrainedLabel}); err != nil {
		return 0, err
	}
	var errs []error
	for i := range list.Items {
		pod := &list.Items[i]
		if pod.DeletionTimestamp != nil || inplace.HasEnded(pod) {
			continue
		}
		if !e.late && !inplace.Observe(pod, e.clock.Now()).Complete {
			left++
			continue
		}
		switch _, err := executor.EndDrain(ctx, e.client, pod, false, e.clock.Now()); {
		case err == nil:
			fmt.Fprintf(e.out, "Ended the drain of pod %s/%s\n", pod.Namespace, pod.Name)
		case workloads.IgnoreConflict(client.IgnoreNotFound(err)) == nil:
			left++ // it is looked at again
		default:
			errs = append(errs, err)
		}
	}
	return left, errors.Join(errs...)
}
