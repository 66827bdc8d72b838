// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/insitu-dev/insitu/test/lab/host"
)

// Canonical returns the one name of a folder that need not exist: absolute
// and without symbolic links.
func Canonical(dir string) (string, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find folder %s: %w", dir, err)
	}
	resolved, err := filepath.EvalSymlinks(absolute)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(absolute) != absolute {
		parent, err := Canonical(filepath.Dir(absolute))
		return filepath.Join(parent, filepath.Base(absolute)), err
	}
	if err != nil {
		return "", fmt.Errorf("find folder %s: %w", dir, err)
	}
	return resolved, nil
}

// checkUnused returns an error if the folder holds something that is not a
// lab's, so that taking the lab down can never remove what a user keeps.
func checkUnused(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look into folder of the lab: %w", err)
	}
	for _, entry := range entries {
		// Logs outlive a lab, and a runner holds the folder before there is one.
		if entry.Name() != "logs" && entry.Name() != runnerLock {
			return fmt.Errorf("folder %s holds %s and no lab: choose an empty or a new folder with --dir", dir, entry.Name())
		}
	}
	return nil
}

// checkName returns an error if the folder's name has characters that mean something in
// the options of mounts or in the files of the nodes' programs.
func checkName(lab *Lab) error {
	const special = `:,"\{}#`
	if at := strings.IndexAny(lab.Dir, special); at >= 0 && lab.Nodes > 0 {
		return fmt.Errorf("folder %s has %q in its name, and nodes can have none of %s there: choose another with --dir", lab.Dir, lab.Dir[at], special)
	}
	return nil
}

// removeFiles removes what a lab has in its folder, except for its logs. The
// record goes last, so that a removal that was interrupted can be repeated.
func (l *Lab) removeFiles() error {
	for _, path := range []string{l.Kubeconfig(), l.state(), filepath.Join(l.Dir, recordFile)} {
		if err := os.RemoveAll(path); err != nil {
			return fmt.Errorf("remove files of the lab: %w", err)
		}
	}
	return nil
}

// removeFolder removes the folder of a lab that is down, unless logs are there, and the
// lock of its runner.
func removeFolder(dir string) error {
	if err := removeLock(dir); err != nil {
		return err
	}
	// Fails, as it should, if logs are there.
	_ = os.Remove(dir)
	return nil
}

// makeFolder makes a folder, so that its lock keeps others away, and returns what removes
// the folders again that were missing, unless something is in them by then.
func makeFolder(dir string) (undo func(), err error) {
	var missing []string
	for path := dir; ; path = filepath.Dir(path) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, path)
	}
	undo = func() {
		for _, path := range missing {
			_ = os.Remove(path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		undo()
		return nil, fmt.Errorf("make folder of the lab: %w", err)
	}
	return undo, nil
}

// lockFolder makes the lab's folder and takes its lock, which "up", "down" and "sweep"
// hold while they work on the lab.
func lockFolder(dir string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make folder of the lab: %w", err)
		}
		unlock, err := host.Lock(dir)
		if !errors.Is(err, fs.ErrNotExist) {
			return unlock, err
		}
		// A lab that was here went down meanwhile, and the folder with it.
	}
}
