// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package gates

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/insitu-dev/insitu/controllers/executor"
	"github.com/insitu-dev/insitu/controllers/workload"
	"github.com/insitu-dev/insitu/inplace"
)

const (
	// pause is how long LetAllServe waits before it looks at the pods again.
	pause = 500 * time.Millisecond
	// podsAtATime is how many pods LetAllServe reads with one request.
	podsAtATime = 500
)

// LetAllServe lets all pods serve, in the given namespaces, that nothing lets serve when
// there is no manager any more, and tells of each: it ends the drain of those that have
// the label, whoever drains them, and opens the gates of pods of Kubernetes whose workload
// is not held. A pod whose containers are about to be stopped stays out of service until
// they run again, for as long as the patience lasts. Pods that others take out of service
// again and again are in the error, after twice the patience.
func LetAllServe(ctx context.Context, c client.Client, namespaces []string, patience time.Duration, out io.Writer) error {
	a := &all{client: c, out: out, clock: clock.RealClock{}}
	deadline := a.clock.Now().Add(patience)
	var failed error // of the last try
	err := wait.PollUntilContextCancel(ctx, pause, true, func(ctx context.Context) (bool, error) {
		a.late = !a.clock.Now().Before(deadline)
		failed = a.find(ctx, namespaces)
		if failed == nil {
			failed = a.letServe(ctx)
		}
		isOver := failed != nil || !a.clock.Now().Before(deadline.Add(patience))
		return failed == nil && len(a.left) == 0 || a.late && isOver, nil
	})
	if failed == nil && len(a.left) > 0 {
		failed = fmt.Errorf("pods %v change again and again", a.left)
	}
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("let pods serve: %w", err)
	}
	return nil
}

// all is what LetAllServe knows.
type all struct {
	client client.Client
	out    io.Writer
	clock  clock.PassiveClock
	// found: left holds the pods that may be kept out of service.
	found bool
	left  []client.ObjectKey
	// late: containers that do not run yet are not waited for any more.
	late bool
}

// find looks once for the pods that are kept out of service.
func (a *all) find(ctx context.Context, namespaces []string) error {
	if a.found {
		return nil
	}
	a.left = nil
	for _, namespace := range namespaces {
		list := &corev1.PodList{}
		for {
			if err := a.client.List(ctx, list, client.InNamespace(namespace), client.Limit(podsAtATime), client.Continue(list.Continue)); err != nil {
				return err
			}
			for i := range list.Items {
				if pod := &list.Items[i]; inplace.HasDrainedLabel(pod) || nextStep(pod) != nil {
					a.left = append(a.left, client.ObjectKeyFromObject(pod))
				}
			}
			if list.Continue == "" {
				break
			}
		}
	}
	a.found = true
	return nil
}

// letServe lets the pods serve that may, and keeps the others for the next time.
func (a *all) letServe(ctx context.Context) error {
	var left []client.ObjectKey
	var errs []error
	for _, key := range a.left {
		done, err := a.letOneServe(ctx, key)
		if err != nil {
			errs = append(errs, err)
		}
		if !done {
			left = append(left, key)
		}
	}
	a.left = left
	return errors.Join(errs...)
}

// letOneServe lets a pod serve, and reports whether nothing is left to do for it.
func (a *all) letOneServe(ctx context.Context, key client.ObjectKey) (bool, error) {
	pod := &corev1.Pod{}
	if err := a.client.Get(ctx, key, pod); err != nil {
		return client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	}
	step := nextStep(pod)
	if pod.DeletionTimestamp != nil || inplace.HasEnded(pod) || step == nil && !inplace.HasDrainedLabel(pod) {
		return true, nil
	}
	if held, err := isHeld(ctx, a.client, pod); held || err != nil {
		return held, err // its controller lets it serve, and the workload is told of
	}
	now := a.clock.Now()
	if !a.late && inplace.IsMarkedNotReady(pod) && !inplace.Observe(pod, now).Complete {
		return false, nil
	}
	if inplace.HasDrainedLabel(pod) {
		if _, err := executor.EndDrain(ctx, a.client, pod, false, now); err != nil {
			return false, workload.IgnoreConflict(client.IgnoreNotFound(err))
		}
		fmt.Fprintf(a.out, "Ended the drain of pod %s\n", key)
		return step == nil, nil // it has gates, too
	}
	if err := executor.SetReadiness(ctx, a.client, pod, *step, now); err != nil {
		return false, workload.IgnoreConflict(client.IgnoreNotFound(err))
	}
	fmt.Fprintf(a.out, "Opened the readiness gates of pod %s\n", key)
	return true, nil
}
