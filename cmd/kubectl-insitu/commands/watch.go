// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"cmp"
	"context"
	"os"
	"time"

	"k8s.io/utils/clock"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/cluster"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/render"
	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

// lookPeriod is how often a report is made again without a change: ages pass, and what
// waits for too long needs help.
const lookPeriod = time.Second

// look shows a workload until it has come to rest.
func (o *statusOptions) look(ctx context.Context, c *cluster.Cluster, found cluster.Found) error {
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.timeout, exitError(ExitTimeout))
		defer cancel()
	}
	watcher, err := c.Watch(ctx, found.Object.GetNamespace())
	if err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	f := follower{watcher: watcher, found: found, reports: make(chan report.Workload)}
	go f.run(ctx)
	if err := o.draw(ctx, f.reports); err != nil {
		return err
	}
	if o.output.ForPrograms() && f.last.Name != "" {
		if err := o.show(f.last); err != nil {
			return err
		}
	}
	return cmp.Or(f.err, o.exit(f.last.Phase))
}

// draw shows reports as they come: in place in a terminal, else a line for each change.
// Programs get the last one.
func (o *statusOptions) draw(ctx context.Context, reports <-chan report.Workload) error {
	if terminal, ok := o.Out.(*os.File); ok && render.IsTerminal(terminal) && !o.output.ForPrograms() {
		return render.Live(context.WithoutCancel(ctx), render.Terminal{File: terminal}, reports, o.rendering(), clock.RealClock{})
	}
	before := report.Workload{}
	for told := range reports {
		if o.output.ForPrograms() {
			continue
		}
		if err := render.Lines(o.Out, before, told, o.rendering()); err != nil {
			return err
		}
		before = told
	}
	return nil
}

// follower reports on a workload whenever something changes, until it has come to rest.
type follower struct {
	watcher *cluster.Watcher
	found   cluster.Found
	// reports is closed at the end. What is last, and what ended it, may be read then.
	reports chan report.Workload
	last    report.Workload
	err     error
}

func (f *follower) run(ctx context.Context) {
	defer close(f.reports)
	ticker := time.NewTicker(lookPeriod)
	defer ticker.Stop()
	for {
		told, err := f.watcher.Report(ctx, f.found)
		if err != nil {
			f.err = cmp.Or(context.Cause(ctx), err)
			return
		}
		f.last = told
		select {
		case f.reports <- f.last:
		case <-ctx.Done():
			f.err = context.Cause(ctx)
			return
		}
		if isAtRest(f.last.Phase) {
			return
		}
		select {
		case <-f.watcher.Changed():
		case <-ticker.C:
		case <-ctx.Done():
			f.err = context.Cause(ctx)
			return
		}
	}
}

// isAtRest reports whether a workload in a phase goes on by itself.
func isAtRest(phase report.Phase) bool {
	return phase == report.Healthy || phase == report.Paused || phase == report.Stalled
}
