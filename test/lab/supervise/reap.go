// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
)

// reaper collects every child of this process: those it started, and orphans
// handed to it because it is the first process of a PID namespace. While it
// runs nothing else in the process may wait for a child, so no exec.Cmd.Run.
type reaper struct {
	mu      sync.Mutex
	waiters map[int]chan syscall.WaitStatus
}

func newReaper() *reaper {
	return &reaper{waiters: map[int]chan syscall.WaitStatus{}}
}

// start starts the command. The channel yields its end, once.
func (r *reaper) start(command *exec.Cmd) (<-chan syscall.WaitStatus, error) {
	// The lock is held over the start, so that a child that dies at once is
	// not collected before its waiter is known.
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan syscall.WaitStatus, 1)
	r.waiters[command.Process.Pid] = ended
	return ended, nil
}

// run collects children until the context ends.
func (r *reaper) run(ctx context.Context) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	defer signal.Stop(signals)
	for {
		r.collect()
		select {
		case <-ctx.Done():
			return
		case <-signals:
		}
	}
}

// collect takes every child that has ended.
func (r *reaper) collect() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		if ended, ok := r.waiters[pid]; ok {
			delete(r.waiters, pid)
			ended <- status
		}
	}
}
