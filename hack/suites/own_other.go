// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

// start starts a command. What its orphaned descendants take is not known here.
func start(args []string, _ time.Duration) (wait func() (int, usage), err error) {
	command := exec.Command(args[0], args[1:]...) //nolint:gosec,noctx // what hack/test asks for
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		return nil, err
	}

	return func() (int, usage) {
		status := 0
		exit := &exec.ExitError{}
		if err := command.Wait(); errors.As(err, &exit) {
			status = max(exit.ExitCode(), 1)
		}
		state := command.ProcessState

		return status, usage{CPU: state.UserTime() + state.SystemTime()}
	}, nil
}
