// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// ownerFile names, in the folder of sockets of a lab without a slot, the lab's folder.
const ownerFile = "owner"

// Sweep clears up what was left by labs, runners and calls of "up" that were killed, and
// tells through say what it did. Of the labs of this machine and user, but for that in
// the folder except, it
//
//   - takes down those whose folder or record is gone, those that never were ready, and
//     those whose runner has ended;
//   - gives back what a user's lab has outside of its folder if all its processes are
//     gone. The data stays, and "up" goes on with it;
//   - leaves all others alone, and those that an "up" or "down" works on.
func Sweep(say func(string), except string) error {
	var slots []string
	var errs []error
	if host.WhyNoNodes() == nil {
		var err error
		slots, err = host.DefaultSlots.Owners()
		errs = append(errs, err, host.SweepPolicy(say))
	}
	plain, err := plainOwners(plainRunPrefix())
	errs = append(errs, err)
	for _, dir := range append(slots, plain...) {
		if dir == except {
			continue
		}
		if err := sweep(dir, say); err != nil {
			errs = append(errs, fmt.Errorf("sweep the lab in %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// lockToSweep takes the lock of the lab's folder. If the folder is gone, it is made for
// that: an "up" that makes it again has to wait. Unlock removes what is empty again.
func lockToSweep(dir string) (unlock func(), gone bool, err error) {
	release, err := host.TryLock(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return release, false, err
	}
	undo, err := makeFolder(dir)
	if err != nil {
		return func() {}, true, nil //nolint:nilerr // No "up" can make it either.
	}
	release, err = host.TryLock(dir)
	if err != nil {
		return nil, true, err
	}
	return func() {
		undo()
		release()
	}, true, nil
}

// sweep does for one lab what Sweep promises.
func sweep(dir string, say func(string)) error {
	unlock, gone, err := lockToSweep(dir)
	switch {
	case errors.Is(err, host.ErrLocked):
		return nil
	case err != nil:
		return err
	}
	defer unlock()
	// It may have gone down just now.
	if found, err := exists(dir); err != nil || !found {
		return err
	}
	unhold, err := takeOver(dir)
	switch {
	case err == nil:
		defer unhold()
		return sweepAway(dir, "the runner that it was for has ended", say)
	case errors.Is(err, host.ErrLocked):
		return nil
	case !errors.Is(err, errNoRunner):
		return err
	}
	lab, err := Load(dir)
	switch {
	case errors.Is(err, ErrNoLab) && gone:
		return sweepAway(dir, "its folder is gone", say)
	case errors.Is(err, ErrNoLab):
		return sweepAway(dir, "its record is gone", say)
	case err != nil:
		// Whose it is cannot be told; "up" and "down" say the same to the user.
		say(fmt.Sprintf("The lab in %s is left alone: %v", dir, err))
		return nil
	case !lab.Complete:
		return sweepAway(dir, "it never was ready", say)
	}
	return sweepDead(lab, say)
}

// sweepAway takes a lab down.
func sweepAway(dir, why string, say func(string)) error {
	if err := errors.Join(down(dir), removeFolder(dir)); err != nil {
		return err
	}
	say(fmt.Sprintf("The lab in %s is down: %s", dir, why))
	return nil
}

// sweepDead gives back what a user's lab has outside of its folder, if its processes are
// gone.
func sweepDead(lab *Lab, say func(string)) error {
	alive, err := lab.confinement().alive()
	if err != nil || alive {
		return err
	}
	if err := leaveMachine(lab.Dir, func() error { return nil }); err != nil {
		return err
	}
	say(fmt.Sprintf("The lab in %s has no processes any more; its data stays, and \"up\" goes on with it", lab.Dir))
	return nil
}

// plainOwners returns the folders of the labs that have no slot, and of which something
// is left outside of them. The prefix is plainRunPrefix.
func plainOwners(prefix string) ([]string, error) {
	folders, err := filepath.Glob(prefix + "*")
	if err != nil {
		return nil, fmt.Errorf("find folders of sockets: %w", err)
	}
	var owners []string
	for _, folder := range folders {
		// Any user can make a folder there, and name a lab in it.
		if info, err := os.Lstat(folder); err != nil || !info.IsDir() || !isOurs(info) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, ownerFile))
		if errors.Is(err, fs.ErrNotExist) {
			continue // It was killed before it had any process.
		}
		if err != nil {
			return nil, fmt.Errorf("read owner: %w", err)
		}
		owners = append(owners, strings.TrimSpace(string(data)))
	}
	slices.Sort(owners)
	return owners, nil
}

// isOurs reports whether the file belongs to the user of this process.
func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
