// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Supervisor keeps a set of processes running.
type Supervisor struct {
	reaper  *reaper
	workers []*worker
}

// New returns a supervisor of the processes, or an error if two have one name
// or if one is to start after a process that is not there.
func New(processes []Process) (*Supervisor, error) {
	s := &Supervisor{reaper: newReaper()}
	for _, process := range processes {
		if s.worker(process.Name) != nil {
			return nil, fmt.Errorf("process %q is given twice", process.Name)
		}
		s.workers = append(s.workers, newWorker(process, s.reaper))
	}
	for _, w := range s.workers {
		if _, err := s.needs(w); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Run starts the processes and returns when the context has ended and all of
// them are gone.
func (s *Supervisor) Run(ctx context.Context) error {
	reaping, stopReaping := context.WithCancel(context.WithoutCancel(ctx))
	defer stopReaping()
	go s.reaper.run(reaping)

	var running sync.WaitGroup
	for _, w := range s.workers {
		needs, err := s.needs(w)
		if err != nil {
			return err
		}
		running.Go(func() { w.run(ctx, needs) })
	}
	running.Wait()
	return nil
}

// Status returns the status of every process, in the order given to New.
func (s *Supervisor) Status() []Status {
	all := make([]Status, 0, len(s.workers))
	for _, w := range s.workers {
		status, _, _ := w.snapshot()
		all = append(all, status)
	}
	return all
}

// Stop kills the process and returns when it is gone. It stays away until
// Start.
func (s *Supervisor) Stop(ctx context.Context, name string) error {
	w := s.worker(name)
	if w == nil {
		return s.unknown(name)
	}
	w.update(func() { w.wanted = false })
	if !w.until(ctx, func(status Status, _ bool) bool { return status.State == StateStopped }) {
		return fmt.Errorf("stop %s: %w", name, ctx.Err())
	}
	return nil
}

// Start brings back a process that was stopped. It returns at once and does
// nothing if the process runs.
func (s *Supervisor) Start(name string) error {
	w := s.worker(name)
	if w == nil {
		return s.unknown(name)
	}
	w.update(func() { w.wanted = true })
	return nil
}

func (s *Supervisor) worker(name string) *worker {
	i := slices.IndexFunc(s.workers, func(w *worker) bool { return w.process.Name == name })
	if i < 0 {
		return nil
	}
	return s.workers[i]
}

func (s *Supervisor) needs(w *worker) ([]*worker, error) {
	needs := make([]*worker, 0, len(w.process.After))
	for _, name := range w.process.After {
		need := s.worker(name)
		if need == nil {
			return nil, fmt.Errorf("process %q starts after %q, which is not there", w.process.Name, name)
		}
		needs = append(needs, need)
	}
	return needs, nil
}

func (s *Supervisor) unknown(name string) error {
	names := make([]string, 0, len(s.workers))
	for _, w := range s.workers {
		names = append(names, w.process.Name)
	}
	return fmt.Errorf("no process %q, there are %v", name, names)
}
