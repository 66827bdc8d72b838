// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	firstBackOff = 500 * time.Millisecond
	// longestBackOff is short because a lab's programs die for reasons that
	// pass quickly, such as a start before the API server listens.
	longestBackOff = 10 * time.Second
	// steadyAfter is how long a process must have run for its next death to
	// count as the first.
	steadyAfter = 30 * time.Second
)

// worker keeps one process running.
type worker struct {
	process Process
	reaper  *reaper

	mu      sync.Mutex
	status  Status
	wanted  bool
	changed chan struct{} // closed and replaced at every change of status or wanted
	starts  int
}

func newWorker(process Process, reaper *reaper) *worker {
	return &worker{
		process: process,
		reaper:  reaper,
		status:  Status{Name: process.Name, State: StateWaiting, Since: time.Now()},
		wanted:  true,
		changed: make(chan struct{}),
	}
}

// snapshot returns the status, whether the process should run, and a channel
// that is closed when either changes.
func (w *worker) snapshot() (Status, bool, <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.status, w.wanted, w.changed
}

// update changes the worker under its lock and wakes those who watch it.
func (w *worker) update(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.status.State
	change()
	if w.status.State != before {
		w.status.Since = time.Now()
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *worker) enter(state State) {
	w.update(func() { w.status.State = state })
}

// until blocks until the condition holds for the worker or the context ends,
// and reports which: true for the condition.
func (w *worker) until(ctx context.Context, condition func(Status, bool) bool) bool {
	for {
		status, wanted, changed := w.snapshot()
		if condition(status, wanted) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// run starts the process, and again whenever it dies, until the context ends.
func (w *worker) run(ctx context.Context, needs []*worker) {
	backOff := newBackOff()
	for ctx.Err() == nil {
		if !w.until(ctx, func(_ Status, wanted bool) bool { return wanted }) {
			return
		}
		w.enter(StateWaiting)
		for _, need := range needs {
			if !need.until(ctx, func(status Status, _ bool) bool { return status.State == StateReady }) {
				return
			}
		}
		began := time.Now()
		w.runOnce(ctx)
		if _, wanted, _ := w.snapshot(); !wanted {
			w.enter(StateStopped)
			backOff = newBackOff()
			continue
		}
		if time.Since(began) > steadyAfter {
			backOff = newBackOff()
		}
		w.enter(StateBackOff)
		pause(ctx, backOff.Step())
	}
}

func newBackOff() *wait.Backoff {
	return &wait.Backoff{Duration: firstBackOff, Factor: 2, Cap: longestBackOff, Steps: 10}
}

func pause(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// runOnce runs the process to its end, which comes by itself, by Stop or with
// the context.
func (w *worker) runOnce(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command, ended, err := w.launch()
	if err != nil {
		w.update(func() { w.status.LastExit = err.Error() })
		return
	}
	go w.watchReady(ctx)
	unwanted := make(chan struct{})
	go func() {
		defer close(unwanted)
		w.until(ctx, func(_ Status, wanted bool) bool { return !wanted })
	}()

	var exit syscall.WaitStatus
	select {
	case exit = <-ended:
	case <-unwanted:
		// SIGKILL: a lab is disposable, and a node that is stopped is to
		// look like a machine that lost power. An error means that the
		// process is gone already.
		_ = command.Process.Kill()
		exit = <-ended
	}
	_ = command.Process.Release()
	w.update(func() {
		w.status.PID = 0
		w.status.LastExit = describe(exit)
	})
}

// launch starts the process and records it.
func (w *worker) launch() (*exec.Cmd, <-chan syscall.WaitStatus, error) {
	log, err := os.OpenFile(w.process.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close() // The process has a descriptor of its own.
	command := &exec.Cmd{
		Path:        w.process.Path,
		Args:        w.process.Args,
		Env:         append(os.Environ(), w.process.Env...),
		Stdout:      log,
		Stderr:      log,
		SysProcAttr: w.process.Attributes,
		ExtraFiles:  w.process.Inherit,
	}
	ended, err := w.reaper.start(command)
	if err != nil {
		return nil, nil, fmt.Errorf("start %s: %w", w.process.Name, err)
	}
	w.update(func() {
		w.status.State = StateRunning
		w.status.PID = command.Process.Pid
		w.status.Restarts = w.starts
		w.starts++
	})
	return command, ended, nil
}

// watchReady enters StateReady once the probe succeeds, unless the context
// ends before.
func (w *worker) watchReady(ctx context.Context) {
	if w.process.Ready != nil && !w.process.Ready.await(ctx) {
		return
	}
	w.update(func() {
		if ctx.Err() == nil && w.status.State == StateRunning {
			w.status.State = StateReady
		}
	})
}

func describe(exit syscall.WaitStatus) string {
	if exit.Signaled() {
		return "signal: " + exit.Signal().String()
	}
	return fmt.Sprintf("exit status %d", exit.ExitStatus())
}
