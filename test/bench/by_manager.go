// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// withManager creates the workload and measures the rollouts of the manager.
func (b *bench) withManager(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "insitu-bench-")
	if err != nil {
		return fmt.Errorf("make a folder: %w", err)
	}
	defer os.RemoveAll(folder)
	connection, err := managerAccount.connection(ctx, b.api, b.admin)
	if err != nil {
		return err
	}
	m, err := startManager(ctx, b.api, managerOptions{
		binary: b.manager, log: filepath.Join(b.lab, "logs", "insitu.log"), folder: folder, connection: connection,
	})
	if err != nil {
		return err
	}
	ctx, cancel := m.during(ctx)
	defer cancel()
	if err := b.rollOut(ctx, m); err != nil {
		return errors.Join(err, context.Cause(ctx), m.stop())
	}
	return m.stop()
}

func (b *bench) rollOut(ctx context.Context, m *manager) error {
	if err := b.populate(ctx, m); err != nil {
		return err
	}
	for i, budget := range budgets {
		if err := b.measureManager(ctx, m, i+1, budget); err != nil {
			return err
		}
	}
	return nil
}

// populate notes the memory of the manager without pods, and creates them.
func (b *bench) populate(ctx context.Context, m *manager) error {
	pause(ctx, quiet)
	var err error
	if b.result.EmptyBytes, _, err = m.memory(); err != nil {
		return err
	}
	say("creating %d pods", b.pods)
	if b.service {
		if err := b.api.Create(ctx, newService()); err != nil {
			return fmt.Errorf("create Service: %w", err)
		}
	}
	if err := b.api.Create(ctx, b.workload); err != nil {
		return fmt.Errorf("create workload: %w", err)
	}
	if err := b.awaitRolledOut(ctx); err != nil {
		return err
	}
	b.before, err = b.observePods(ctx)
	return err
}

func (b *bench) measureManager(ctx context.Context, m *manager, state int, budget string) error {
	before, err := scrape(ctx, m.metrics)
	if err != nil {
		return err
	}
	r := rollout{By: byManager, MaxUnavailable: budget}
	err = b.observe(ctx, &r, actor{m.process, managerAccount}, func(ctx context.Context) error {
		key := client.ObjectKeyFromObject(b.workload)
		if err := b.api.Get(ctx, key, b.workload); err != nil {
			return fmt.Errorf("read workload: %w", err)
		}
		base := b.workload.DeepCopyObject().(client.Object)
		parts := b.kind.parts(b.workload)
		b.change.set(&parts.pod.Containers[0], state)
		b.change.limit(parts, intstr.FromString(budget))
		if err := b.api.Patch(ctx, b.workload, client.MergeFrom(base)); err != nil {
			return fmt.Errorf("update workload: %w", err)
		}
		return b.awaitRolledOut(ctx)
	})
	if err != nil {
		return err
	}
	after, err := scrape(ctx, m.metrics)
	if err != nil {
		return err
	}
	r.Reconciliations = int(after[reconcileTotal] - before[reconcileTotal])
	r.ReconcileSeconds = after[reconcileSeconds] - before[reconcileSeconds]
	r.HeapBytes = uint64(after[heapInUse])
	b.result.Rollouts = append(b.result.Rollouts, r)
	return nil
}

// Metrics of the manager.
const (
	reconcileTotal   = "controller_runtime_reconcile_total"
	reconcileSeconds = "controller_runtime_reconcile_time_seconds"
	heapInUse        = "go_memstats_heap_inuse_bytes"
)

// awaitRolledOut waits until all pods are available at the update revision.
func (b *bench) awaitRolledOut(ctx context.Context) error {
	last := 0
	told := time.Now()
	return wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		if err := b.api.Get(ctx, client.ObjectKeyFromObject(b.workload), b.workload); err != nil {
			return false, fmt.Errorf("read workload: %w", err)
		}
		p := b.kind.progress(b.workload)
		if time.Since(told) > quiet && p.available != last {
			say("%d of %d pods available at the update revision", p.available, b.pods)
			told, last = time.Now(), p.available
		}
		return p.observed && p.settled && p.available == b.pods, nil
	})
}
