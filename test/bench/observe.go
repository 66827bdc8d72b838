// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// actor is who makes a rollout: the process, and the account it acts as.
type actor struct {
	process
	account
}

// observe measures what a rollout takes: its time, and until it is quiet again,
// the CPU time and the memory of who does it, and the CPU time of the cluster.
func (b *bench) observe(ctx context.Context, r *rollout, by actor, do func(context.Context) error) error {
	before, err := cpuOf(slices.Concat(b.programs, []process{by.process}))
	if err != nil {
		return err
	}
	if err := by.resetPeak(); err != nil {
		return err
	}
	start := time.Now()
	if err := do(ctx); err != nil {
		return fmt.Errorf("%s, %s at a time: %w", r.By, r.MaxUnavailable, err)
	}
	r.Seconds = time.Since(start).Seconds()
	say("%s, %s at a time: %.1f s", r.By, r.MaxUnavailable, r.Seconds)
	pause(ctx, quiet)
	after, err := cpuOf(slices.Concat(b.programs, []process{by.process}))
	if err != nil {
		return err
	}
	r.CPUSeconds = map[string]float64{}
	for name, spent := range after {
		r.CPUSeconds[name] = math.Round((spent-before[name]).Seconds()*100) / 100
	}
	_, r.PeakBytes, err = by.memory()
	b.windows = append(b.windows, window{user: by.user(), from: start, to: time.Now()})
	return err
}

func cpuOf(processes []process) (map[string]time.Duration, error) {
	spent := map[string]time.Duration{}
	for _, p := range processes {
		var err error
		if spent[p.name], err = p.cpu(); err != nil {
			return nil, err
		}
	}
	return spent, nil
}

// say tells how far the measurement is.
func say(format string, args ...any) {
	fmt.Printf("  %s\n", fmt.Sprintf(format, args...))
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
