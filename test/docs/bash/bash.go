// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package bash runs commands in one shell after the other, as a reader does who pastes
// them: variables, functions and the folder stay.
package bash

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Shell is a running bash. Its zero value is of no use: see Start.
type Shell struct {
	process *exec.Cmd
	input   io.WriteCloser
	codes   *bufio.Reader
	scratch string
}

// Start starts a shell in a folder, with the given environment and no startup files.
// The shell keeps what it needs to talk in scratch.
func Start(folder, scratch string, environment []string) (*Shell, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for exit codes: %w", err)
	}
	defer write.Close()
	// The shell outlives the calls that use it; Stop ends it.
	process := exec.CommandContext(context.Background(), "bash", "--noprofile", "--norc")
	process.Dir, process.Env, process.ExtraFiles = folder, environment, []*os.File{write}
	// A group of its own, so that all it has started ends with it.
	process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	input, err := process.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe for commands: %w", err)
	}
	if err := process.Start(); err != nil {
		return nil, fmt.Errorf("start bash: %w", err)
	}
	return &Shell{process: process, input: input, codes: bufio.NewReader(read), scratch: scratch}, nil
}

// Run runs a command, and returns what it printed to both outputs and its exit code. A
// command whose time is over is killed, and the shell with it.
func (s *Shell) Run(ctx context.Context, command string) (output string, code int, err error) {
	script, printed := filepath.Join(s.scratch, "command"), filepath.Join(s.scratch, "output")
	if err := os.WriteFile(script, []byte(command+"\n"), 0o600); err != nil {
		return "", 0, fmt.Errorf("write the command: %w", err)
	}
	// By "source" an unfinished quote ends with the file, instead of waiting for more.
	stop := context.AfterFunc(ctx, s.kill)
	defer stop()
	_, writeErr := fmt.Fprintf(s.input, "source '%s' >'%s' 2>&1 </dev/null 3>&-; echo $? >&3\n", script, printed)
	answer, readErr := s.codes.ReadString('\n')
	bytes, _ := os.ReadFile(printed) // none if the shell has ended before
	if err := errors.Join(writeErr, readErr); err != nil {
		if ctx.Err() != nil {
			return string(bytes), 0, fmt.Errorf("the command took too long: %w", context.Cause(ctx))
		}
		return string(bytes), 0, fmt.Errorf("the command ended its shell: %w", err)
	}
	code, err = strconv.Atoi(strings.TrimSpace(answer))
	if err != nil {
		return string(bytes), 0, fmt.Errorf("read the exit code: %w", err)
	}
	return string(bytes), code, nil
}

// Stop ends the shell and all that it has started.
func (s *Shell) Stop() {
	s.kill()
	_ = s.process.Wait() // it was killed, which is no error here
}

func (s *Shell) kill() {
	_ = syscall.Kill(-s.process.Process.Pid, syscall.SIGKILL) // it may have ended by itself
}
