// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// start starts a command whose orphaned descendants become children of this process,
// and returns a function that waits for it, and for them with some patience. So their CPU time is known,
// and what is left behind is found.
func start(args []string, patience time.Duration) (wait func() (int, usage), err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become the parent of orphans: %w", err)
	}
	// Interrupts go to the whole process group. This process stays until the others have
	// cleaned up, and does not ignore them: its children would inherit that.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt, syscall.SIGTERM)
	path, err := exec.LookPath(args[0])
	if err != nil {
		return nil, err
	}
	process, err := os.StartProcess(path, args, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return nil, err
	}

	counted := &meter{}
	go counted.run(time.Second)

	return func() (int, usage) {
		status := collectUntil(process.Pid)
		left := collectRest(patience)

		return status, usage{CPU: counted.measure(), Left: left}
	}, nil
}

// collectUntil waits for children until one of them has ended, and returns its status
// as a shell does: 128 and the number of the signal that ended it.
func collectUntil(pid int) int {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 1
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid:
			return status.ExitStatus()
		}
	}
}

// collectRest waits for the children that are still there, kills those that do not end,
// and names them. With KEEP_LAB, a lab is meant to stay.
func collectRest(patience time.Duration) []string {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) && os.Getenv("KEEP_LAB") == "" {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.ECHILD) {
			return nil
		}
		if pid == 0 {
			time.Sleep(100 * time.Millisecond)
		}
	}
	if os.Getenv("KEEP_LAB") != "" {
		return nil
	}
	var left []string
	for _, stat := range descendants() {
		left = append(left, commandOf(stat.PID))
		_ = syscall.Kill(stat.PID, syscall.SIGKILL)
	}
	for {
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, syscall.ECHILD) {
			return left
		}
	}
}

// commandOf returns the command line of a process.
func commandOf(pid int) string {
	process, err := procfs.NewProc(pid)
	if err != nil {
		return strconv.Itoa(pid)
	}
	line, err := process.CmdLine()
	if err != nil {
		return strconv.Itoa(pid)
	}

	return strings.Join(line, " ")
}
