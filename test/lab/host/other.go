// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package host

import (
	"errors"
	"net/netip"
	"syscall"
)

// errNotLinux is returned by everything that real nodes need.
var errNotLinux = errors.New("real nodes need Linux")

// LabAttributes are those of a process detached from the terminal.
func LabAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// NodeAttributes are none: there are no nodes.
func NodeAttributes() *syscall.SysProcAttr { return nil }

// Mounts is without meaning here.
type Mounts struct {
	Keep    []string
	Replace map[string]string
	Values  map[string]string
}

// Apply returns an error.
func (Mounts) Apply(string) error { return errNotLinux }

// Link is without meaning here.
type Link struct {
	Name      string
	Host, Lab netip.Prefix
	Nodes     []netip.Addr
	Range     netip.Prefix
}

// Connect returns an error.
func (Link) Connect(int) error { return errNotLinux }

// Disconnect returns an error.
func (Link) Disconnect() error { return errNotLinux }

// Settle returns an error.
func (Link) Settle() error { return errNotLinux }

// CanLowerOOMScore returns false: there are no containers.
func CanLowerOOMScore() bool { return false }

// CloseOnExec does nothing: there is no cheap way.
func CloseOnExec() error { return nil }
