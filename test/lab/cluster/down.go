// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"io/fs"
	"os"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// Down takes the lab down: no process, mount, link, firewall rule or control
// group of it is left, and of its folder only the logs. It works whatever
// state the lab and its folder are in. Found is false if there was no lab.
func Down(dir string) (found bool, err error) {
	// An "up" under way either finishes or takes down what it began. A "sweep" may take the
	// folder away.
	unlock, err := host.Lock(dir)
	if err == nil {
		defer unlock()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	found, err = exists(dir)
	if err == nil && found {
		err = down(dir)
	}
	if err != nil {
		return found, err
	}
	return found, removeFolder(dir)
}

// exists reports whether something of a lab is there.
func exists(dir string) (bool, error) {
	if _, err := os.Stat(plainRun(dir)); err == nil {
		return true, nil
	}
	_, err := host.DefaultSlots.Find(dir)
	if !errors.Is(err, host.ErrNoSlot) {
		return true, err
	}
	_, err = Load(dir)
	// A record that cannot be read is one, too.
	return !errors.Is(err, ErrNoLab), nil
}

// down leaves nothing of the lab but its folder, with the logs and the lock of a runner.
func down(dir string) error { return leaveMachine(dir, (&Lab{Dir: dir}).removeFiles) }

// leaveMachine kills the lab's processes, and gives back what the lab has outside of its
// folder. It does not trust the record, which may be gone: the slot and the folder of
// sockets are found by the name of the lab's folder. When nothing uses the lab's folder
// any more, files is called.
func leaveMachine(dir string, files func() error) error {
	if err := (&grouped{folder: plainRun(dir)}).destroy(); err != nil {
		return err
	}
	slot, unlock, err := host.DefaultSlots.Hold(dir)
	if errors.Is(err, host.ErrNoSlot) {
		return files()
	}
	if err != nil {
		return err
	}
	defer unlock()
	lab := &Lab{Dir: dir, Slot: slot}
	if err := (&isolated{lab: lab}).destroy(); err != nil {
		return err
	}
	if err := errors.Join(lab.store().Release(), files()); err != nil {
		return err
	}
	// Last, because it is how all else is found.
	return host.DefaultSlots.Release(slot)
}
