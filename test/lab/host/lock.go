// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package host

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// Lock takes the lock of a folder, waiting for whoever has it. No file is
// made, and the lock goes with the process at the latest.
func Lock(folder string) (unlock func(), err error) {
	return lock(folder, syscall.LOCK_EX)
}

// ErrLocked is returned by TryLock if another process has the lock.
var ErrLocked = errors.New("locked by another process")

// TryLock is Lock without waiting: it returns ErrLocked instead.
func TryLock(folder string) (unlock func(), err error) {
	return lock(folder, syscall.LOCK_EX|syscall.LOCK_NB)
}

func lock(path string, how int) (func(), error) {
	for {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("lock: %w", err)
		}
		if err := flock(file, how); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		if isAt(file, path) {
			return func() { _ = file.Close() }, nil
		}
		// Whoever had the lock has removed the file meanwhile.
		_ = file.Close()
	}
}

func flock(file *os.File, how int) error {
	for {
		err := syscall.Flock(int(file.Fd()), how)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return ErrLocked
		case !errors.Is(err, syscall.EINTR):
			return fmt.Errorf("lock %s: %w", file.Name(), err)
		}
	}
}

// isAt reports whether the open file is what the path leads to.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	found, err := os.Stat(path)
	return err == nil && os.SameFile(opened, found)
}
