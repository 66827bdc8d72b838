// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"os"
	"syscall"
	"time"
)

// Process is one program to keep running.
type Process struct {
	// Name is unique within a supervisor.
	Name string
	// Path is the program file. Args are its arguments, Args[0] included.
	Path string
	Args []string
	// Env is added to the supervisor's own environment.
	Env []string
	// Log is the file that standard output and standard error are appended to.
	Log string
	// After names the processes that must be ready before this one starts.
	After []string
	// Ready tells when the process serves. Without it, running is enough.
	Ready *Probe
	// Attributes are the system attributes to start with, such as namespaces.
	Attributes *syscall.SysProcAttr
	// Inherit are open files passed on to the process, from descriptor 3 on.
	Inherit []*os.File
}

// State is where a process is in its life.
type State string

const (
	// StateWaiting means that a process named in After is not ready yet.
	StateWaiting State = "Waiting"
	// StateRunning means started, but not ready yet.
	StateRunning State = "Running"
	// StateReady means that the probe succeeded once since the start.
	StateReady State = "Ready"
	// StateBackOff means that the process died and will be started again.
	StateBackOff State = "BackOff"
	// StateStopped means stopped by Stop; Start brings it back.
	StateStopped State = "Stopped"
)

// Status is what a supervisor knows about one of its processes.
type Status struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// PID is the number of the process in the supervisor's PID namespace, 0
	// if it does not run.
	PID int `json:"pid,omitempty"`
	// Restarts counts the starts after the first.
	Restarts int `json:"restarts"`
	// Since is the time at which State was entered.
	Since time.Time `json:"since"`
	// LastExit says how the process ended the last time, such as "exit status 1".
	LastExit string `json:"lastExit,omitempty"`
}
