// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// lookPeriod is how often a report is made anew without a change: ages pass, and what
// waits for too long needs help.
const lookPeriod = time.Second

// look shows a workload until it has come to rest.
func (o *statusOptions) look(ctx context.Context, c *cluster.Cluster, found cluster.Found) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, exitCode(ExitTimeout))
		defer cancel()
	}
	watcher, err := c.Watch(ctx, found.Object.GetNamespace())
	if err != nil {
		return err
	}
	reports := make(chan report.Workload)
	ended := make(chan error, 1)
	go func() {
		defer close(reports)
		ended <- follow(ctx, watcher, found, reports)
	}()
	last := report.Workload{}
	for told := range reports {
		last = told
		fmt.Fprintln(o.Out, told.Phase)
	}
	if err := <-ended; err != nil {
		return err
	}
	return o.exit(last.Phase)
}

// follow reports on a workload whenever something changes, until it has come to rest.
func follow(ctx context.Context, watcher *cluster.Watcher, found cluster.Found, reports chan<- report.Workload) error {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		told, err := watcher.Report(ctx, found)
		if err != nil {
			return err
		}
		select {
		case reports <- told:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if isAtRest(told.Phase) {
			return nil
		}
		select {
		case <-watcher.Changed():
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isAtRest reports whether a workload in a phase goes on by itself.
func isAtRest(phase report.Phase) bool {
	return phase == report.Healthy || phase == report.Paused || phase == report.Stalled
}
