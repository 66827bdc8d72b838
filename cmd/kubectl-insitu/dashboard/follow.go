// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// The follower's times.
const (
	// minInterval is the least time between two lists: a rollout of many pods changes
	// faster than a user can look.
	minInterval = 250 * time.Millisecond
	// relistInterval is when a list is read although nothing changed: deadlines pass.
	relistInterval = 10 * time.Second
	// retryInterval is when a list that failed is tried again.
	retryInterval = 3 * time.Second
	// listTimeout is how long a list may take.
	listTimeout = 30 * time.Second
)

// follower keeps state and timelines as the source is.
type follower struct {
	source    Source
	state     *state
	timelines *timelines
	clock     clock.Clock
}

// run follows the source until ctx ends.
func (f *follower) run(ctx context.Context) {
	changed := f.source.Changed()
	for {
		wait := relistInterval
		if err := f.read(ctx); err != nil {
			f.state.fail(err, f.clock.Now())
			wait = retryInterval
		}
		if !f.sleep(ctx, minInterval, nil) || !f.sleep(ctx, wait-minInterval, changed) {
			return
		}
	}
}

func (f *follower) read(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	list, err := f.source.List(ctx)
	if err != nil {
		return err
	}
	now := f.clock.Now()
	f.timelines.record(list, now)
	return f.state.replace(list, now)
}

// sleep waits for a time or an earlier value, and reports false once ctx has ended.
func (f *follower) sleep(ctx context.Context, duration time.Duration, early <-chan struct{}) bool {
	timer := f.clock.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-early:
	case <-timer.C():
	}
	return ctx.Err() == nil
}
