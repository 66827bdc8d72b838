// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"os"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// Down takes the lab down: no process, mount, link, firewall rule or control
// group of it is left, and of its folder only the logs. It works whatever
// state the lab and its folder are in. Found is false if there was no lab.
func Down(dir string) (found bool, err error) {
	if _, err := os.Stat(dir); err == nil {
		// An "up" under way either finishes or takes down what it began.
		unlock, err := host.Lock(dir)
		if err != nil {
			return false, err
		}
		defer unlock()
	}
	found, err = exists(dir)
	if err != nil || !found {
		return found, err
	}
	return true, down(dir)
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

// down does not trust the record, which may be gone: the slot and the folder
// of sockets are found by the name of the lab's folder.
func down(dir string) error {
	lab := &Lab{Dir: dir}
	if err := (&grouped{folder: plainRun(dir)}).destroy(); err != nil {
		return err
	}
	slot, err := host.DefaultSlots.Find(dir)
	if errors.Is(err, host.ErrNoSlot) {
		return lab.removeFiles()
	}
	if err != nil {
		return err
	}
	lab.Slot = slot
	if err := (&isolated{lab: lab}).destroy(); err != nil {
		return err
	}
	if err := errors.Join(lab.store().Release(), lab.removeFiles()); err != nil {
		return err
	}
	// Last, because it is how all else is found.
	return host.DefaultSlots.Release(slot)
}
