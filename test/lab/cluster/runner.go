// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// runnerLock is a file in a lab's folder. A runner, such as a suite of tests, makes it
// before it calls "up", and locks it by flock(2) for as long as it lives: the lab is its
// own, and lasts no longer than the lock. A lab without the file is a user's.
const runnerLock = "runner.lock"

// errNoRunner is returned by takeOver if the folder is that of no runner.
var errNoRunner = errors.New("no runner")

// takeOver takes the lock of the runner whose folder this is: it has ended without taking
// its lab down. It returns host.ErrLocked if the runner lives.
func takeOver(dir string) (unlock func(), err error) {
	unlock, err = host.TryLock(filepath.Join(dir, runnerLock))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoRunner
	}
	return unlock, err
}

// clearFolder takes down a lab that "up" must not go on with.
func clearFolder(opts UpOptions) error {
	unlock, err := takeOver(opts.Dir)
	switch {
	case err == nil:
		defer unlock()
	case errors.Is(err, host.ErrLocked), errors.Is(err, errNoRunner):
		if !opts.Fresh {
			return nil
		}
	default:
		return err
	}
	found, err := exists(opts.Dir)
	if err != nil {
		return err
	}
	if found {
		opts.Say("Taking down the lab that an earlier run left in " + opts.Dir + ", to start with a fresh one")
		if err := down(opts.Dir); err != nil {
			return err
		}
	}
	if unlock == nil {
		return nil
	}
	// The new lab is a user's: a runner would hold the lock.
	return removeLock(opts.Dir)
}

// removeLock removes the lock of a runner, if there is one.
func removeLock(dir string) error {
	if err := os.Remove(filepath.Join(dir, runnerLock)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove lock of the runner: %w", err)
	}
	return nil
}
