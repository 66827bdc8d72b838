// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"context"
	"fmt"
	"os"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/clock"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/render"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// lookPeriod is how often a report is made anew without a change: ages pass, and what
// waits for too long needs help.
const lookPeriod = time.Second

// look shows a workload until it has come to rest.
func (o *statusOptions) look(ctx context.Context, c *cluster.Cluster, found cluster.Found) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
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
	var last report.Phase
	ended := make(chan error, 1)
	go func() {
		defer close(reports)
		phase, err := follow(ctx, watcher, found, reports)
		last = phase
		ended <- err
	}()
	if err := o.show(ctx, reports); err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return err
	}
	return o.exit(last)
}

// show shows reports as they come, until there are no more: in a terminal each over the one
// before, else as lines that say what has changed, or as documents.
func (o *statusOptions) show(ctx context.Context, reports <-chan report.Workload) error {
	if file, ok := o.Out.(*os.File); ok && o.output == forPeople && render.IsTerminal(file) {
		return render.Live(ctx, render.Terminal{File: file}, reports, o.rendering(), clock.RealClock{})
	}
	before := report.Workload{}
	for told := range reports {
		if apiequality.Semantic.DeepEqual(before, told) {
			continue
		}
		if o.output == asYAML && before.Name != "" {
			fmt.Fprintln(o.Out, "---")
		}
		err := o.output.print(o.Out, told, func() error { return render.Lines(o.Out, before, told, o.rendering()) })
		if err != nil {
			return err
		}
		before = told
	}
	return nil
}

// follow reports on a workload whenever something changes, until it has come to rest, and
// returns in which phase.
func follow(ctx context.Context, watcher *cluster.Watcher, found cluster.Found, reports chan<- report.Workload) (report.Phase, error) {
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		told, err := watcher.Report(ctx, found)
		if err != nil {
			return "", err
		}
		select {
		case reports <- told:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		if isAtRest(told.Phase) {
			return told.Phase, nil
		}
		select {
		case <-watcher.Changed():
		case <-ticker.C:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// isAtRest reports whether a workload in a phase goes on by itself.
func isAtRest(phase report.Phase) bool {
	return phase == report.Healthy || phase == report.Paused || phase == report.Stalled
}
