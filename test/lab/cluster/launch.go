// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// A supervisor is started with a pipe. It waits for the first byte before it
// does anything, so that its confinement is complete by then; and until the
// second it ends when the pipe does, so that it does not outlive an "up" that
// was killed half way.
const (
	handshakeFD = 3 // the pipe
	aliveFD     = 4 // the lock of a grouped lab, see grouped
)

// launch is a supervisor that was started.
type launch struct {
	pipe *os.File
}

// launch starts the supervisor inside its confinement.
func (l *Lab) launch() (*launch, error) {
	confinement := l.confinement()
	inherit, err := confinement.prepare()
	if err != nil {
		return nil, err
	}
	defer closeAll(inherit)
	log, err := os.OpenFile(l.Log("supervisor"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open log of supervisor: %w", err)
	}
	defer closeAll([]*os.File{log})
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	defer closeAll([]*os.File{reader})

	started := &launch{pipe: writer}
	if err := host.CloseOnExec(); err != nil {
		return nil, err
	}
	command := l.supervisorCommand(log, append([]*os.File{reader}, inherit...)...)
	if err := command.Start(); err != nil {
		started.abandon()
		return nil, fmt.Errorf("start supervisor: %w", err)
	}
	// Collected here in case it dies while this process still runs.
	go func() { _ = command.Wait() }()
	if err := confinement.receive(command.Process.Pid); err != nil {
		started.abandon()
		return nil, err
	}
	return started, started.signal()
}

// commit lets the supervisor live on without this process.
func (s *launch) commit() error {
	if err := s.signal(); err != nil {
		return err
	}
	s.abandon()
	return nil
}

// abandon ends the supervisor unless it was committed.
func (s *launch) abandon() { _ = s.pipe.Close() }

func (s *launch) signal() error {
	if _, err := s.pipe.Write([]byte{1}); err != nil {
		return fmt.Errorf("signal supervisor: %w", err)
	}
	return nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}
