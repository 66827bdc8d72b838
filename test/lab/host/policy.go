// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// policyFile tells Debian's package scripts which services they may start.
const policyFile = "/usr/sbin/policy-rc.d"

// labPolicy is that of a lab: none.
const labPolicy = "#!/bin/sh\n# Made by the lab while it installs packages.\nexit 101\n"

// SweepPolicy removes the policy of a lab that was killed while it installed packages, and
// says so.
func SweepPolicy(say func(string)) error { return servicePolicy(policyFile).sweep(say) }

// servicePolicy is the path of a policy file. Who makes one holds the lock of its folder:
// of two labs that install packages at the same time, the first to end must not allow
// services to the second.
type servicePolicy string

// forbid makes package scripts start no service, such as Debian's own containerd, until
// allow is called. A policy that is there already stays, but for one that a lab left.
func (p servicePolicy) forbid() (allow func(), err error) {
	unlock, err := Lock(filepath.Dir(string(p)))
	if err != nil {
		return nil, fmt.Errorf("forbid services: %w", err)
	}
	left, err := p.isLabs()
	if err == nil && !left {
		err = p.write()
	}
	if errors.Is(err, fs.ErrExist) {
		return unlock, nil
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("forbid services: %w", err)
	}
	return func() {
		_ = os.Remove(string(p))
		unlock()
	}, nil
}

func (p servicePolicy) write() error {
	file, err := os.OpenFile(string(p), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = file.WriteString(labPolicy)
	return errors.Join(err, file.Close())
}

// isLabs reports whether a lab made the file that is there.
func (p servicePolicy) isLabs() (bool, error) {
	content, err := os.ReadFile(string(p))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return string(content) == labPolicy, err
}

func (p servicePolicy) sweep(say func(string)) error {
	unlock, err := TryLock(filepath.Dir(string(p)))
	if errors.Is(err, ErrLocked) || errors.Is(err, fs.ErrNotExist) {
		return nil // A lab installs packages, or this is no Debian.
	}
	if err != nil {
		return err
	}
	defer unlock()
	left, err := p.isLabs()
	if err != nil || !left {
		return err
	}
	if err := os.Remove(string(p)); err != nil {
		return fmt.Errorf("allow services again: %w", err)
	}
	say("Services may be started by packages again: " + string(p) + " was left by a lab")
	return nil
}
