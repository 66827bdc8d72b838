// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// confinement holds all processes of a lab together, so that they can be
// found and killed whatever happened to the lab's folder.
type confinement interface {
	// prepare makes what the supervisor is started in, and returns files
	// that it is to inherit.
	prepare() ([]*os.File, error)
	// receive takes in the supervisor, which waits for it and has done
	// nothing yet.
	receive(pid int) error
	// alive reports whether a process of the lab runs.
	alive() (bool, error)
	// destroy kills every process and removes what prepare and receive made.
	destroy() error
}

func (l *Lab) confinement() confinement {
	if l.Isolated() {
		return &isolated{lab: l}
	}
	return &grouped{folder: l.run(), dir: l.Dir}
}

// isolated confines a lab by namespaces and control groups.
type isolated struct{ lab *Lab }

func (i *isolated) prepare() ([]*os.File, error) {
	cgroups, err := host.DetectCgroups()
	if err != nil {
		return nil, err
	}
	return nil, cgroups.Create(i.lab.systemCgroup())
}

func (i *isolated) receive(pid int) error {
	cgroups, err := host.DetectCgroups()
	if err != nil {
		return err
	}
	if err := cgroups.Join(i.lab.systemCgroup(), pid); err != nil {
		return err
	}
	return i.lab.link().Connect(pid)
}

func (i *isolated) alive() (bool, error) {
	cgroups, err := host.DetectCgroups()
	if err != nil {
		return false, err
	}
	pids, err := cgroups.Processes(i.lab.Cgroup())
	return len(pids) > 0, err
}

func (i *isolated) destroy() error {
	cgroups, err := host.DetectCgroups()
	if err != nil {
		return err
	}
	if err := cgroups.Kill(i.lab.Cgroup()); err != nil {
		return err
	}
	if err := cgroups.Remove(i.lab.Cgroup()); err != nil {
		return err
	}
	return i.lab.link().Disconnect()
}

// grouped confines a lab by a process group. Every process of it inherits a
// locked file, so while the lock is held the group exists and its number has
// not been given to another group.
type grouped struct {
	folder string // of sockets
	dir    string // the lab's, which prepare writes down for plainOwners
}

func (g *grouped) lockFile() string { return filepath.Join(g.folder, "alive") }

func (g *grouped) groupFile() string { return filepath.Join(g.folder, "group") }

func (g *grouped) prepare() ([]*os.File, error) {
	if err := os.MkdirAll(g.folder, 0o700); err != nil {
		return nil, fmt.Errorf("make folder of sockets: %w", err)
	}
	if err := writeFile(filepath.Join(g.folder, ownerFile), []byte(g.dir+"\n"), 0o600); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(g.lockFile(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make lock of processes: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file.Name(), err), file.Close())
	}
	return []*os.File{file}, nil
}

func (g *grouped) receive(pid int) error {
	return writeFile(g.groupFile(), []byte(strconv.Itoa(pid)), 0o600)
}

func (g *grouped) alive() (bool, error) {
	unlock, err := host.TryLock(g.lockFile())
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case errors.Is(err, host.ErrLocked):
		return true, nil
	case err != nil:
		return false, err
	}
	unlock()
	return false, nil
}

func (g *grouped) destroy() error {
	const patience = 2 * time.Minute // on a loaded machine
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		alive, err := g.alive()
		if err != nil {
			return err
		}
		if !alive {
			break
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("processes of the lab do not die; %s is still locked", g.lockFile())
		}
		if err := g.kill(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(g.folder); err != nil {
		return fmt.Errorf("remove folder of sockets: %w", err)
	}
	return nil
}

// kill sends SIGKILL to the group, if it is known. A supervisor that was not
// received yet ends by itself.
func (g *grouped) kill() error {
	data, err := os.ReadFile(g.groupFile())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find processes: %w", err)
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || group <= 1 {
		return fmt.Errorf("find processes: %s holds %q, not a process group", g.groupFile(), data)
	}
	if err := syscall.Kill(-group, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("kill processes: %w", err)
	}
	return nil
}

// supervisorCommand is the first process of the lab.
func (l *Lab) supervisorCommand(log *os.File, inherit ...*os.File) *exec.Cmd {
	command := &exec.Cmd{
		Path:        selfPath(),
		Args:        []string{"lab", "--dir", l.Dir, "supervise"},
		Env:         environment(os.Environ()),
		Stdout:      log,
		Stderr:      log,
		ExtraFiles:  inherit,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if l.Isolated() {
		command.SysProcAttr = host.LabAttributes()
	}
	return command
}
