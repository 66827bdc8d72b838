// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// temporaryName is how folders for the temporary files of a run begin. It is short, as
// paths of sockets are limited to 108 bytes.
const temporaryName = "insitu."

// temporaryMark is a file in these folders, by which they are told from those of others.
const temporaryMark = ".temporary-files-of-insitu-suites"

// ownTemporary makes a folder for the temporary files of all that is started from now on,
// and removes those of runs that were killed. It returns what removes the folder again.
func ownTemporary() (remove func(), err error) {
	var owned []*os.File
	remove = func() {
		for _, folder := range owned {
			if err := removeAll(folder.Name()); err != nil {
				fmt.Println("remove temporary files:", err)
			}
			_ = folder.Close()
		}
	}
	for name, folder := range map[string]string{"TMPDIR": os.TempDir(), "GOTMPDIR": os.Getenv("GOTMPDIR")} {
		if folder == "" {
			continue
		}
		// Labs and mounts are known by the names that no link is in.
		folder, err := filepath.EvalSymlinks(folder)
		if err == nil {
			folder, err = filepath.Abs(folder)
		}
		if err != nil {
			remove()

			return nil, fmt.Errorf("find the folder for temporary files: %w", err)
		}
		removeOldTemporary(folder, "/run/insitu-lab/*/owner", fmt.Sprintf("/tmp/insitu-lab-%d-*/owner", os.Getuid()))
		own, err := makeTemporary(folder)
		if err != nil {
			remove()

			return nil, fmt.Errorf("make a folder for temporary files: %w", err)
		}
		owned = append(owned, own)
		if err := os.Setenv(name, own.Name()); err != nil {
			remove()

			return nil, fmt.Errorf("make a folder for temporary files: %w", err)
		}
	}

	return remove, nil
}

// makeTemporary makes a folder and locks it. What is started does not inherit the lock.
func makeTemporary(parent string) (*os.File, error) {
	for {
		path, err := os.MkdirTemp(parent, temporaryName)
		if err != nil {
			return nil, err
		}
		folder, err := lock(path)
		switch {
		case err == nil:
			return folder, os.WriteFile(filepath.Join(path, temporaryMark), nil, 0o600)
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, fs.ErrNotExist):
			return nil, errors.Join(err, os.Remove(path))
		}
		// Another run took it for an old one, before it was locked.
	}
}

// removeOldTemporary removes the folders that no run has locked, but for those with a lab:
// that goes first. The patterns are of files that name the folder of a lab.
func removeOldTemporary(parent string, labs ...string) {
	old, err := filepath.Glob(filepath.Join(parent, temporaryName+"*"))
	if err != nil {
		return // Never: the pattern is good, unless the parent's name has brackets.
	}
	for _, path := range old {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || !isOurs(info) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(path, temporaryMark)); err != nil {
			continue
		}
		folder, err := lock(path)
		if err != nil {
			continue // Its run goes on.
		}
		if lab := labIn(path, labs); lab != "" {
			fmt.Printf("%s stays, because of the lab in %s: hack/lab sweep\n", path, lab)
		} else if err := removeAll(path); err != nil {
			fmt.Println("remove old temporary files:", err)
		}
		_ = folder.Close()
	}
}

func removeAll(folder string) error {
	if err := unmountBelow(folder); err != nil {
		return err
	}

	return os.RemoveAll(folder)
}

// labIn returns the folder of a lab that is below the given one, "" for none.
func labIn(folder string, patterns []string) string {
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil {
			return ""
		}
		for _, file := range files {
			owner, err := os.ReadFile(file)
			if err == nil && strings.HasPrefix(string(owner), folder+"/") {
				return strings.TrimSpace(string(owner))
			}
		}
	}

	return ""
}

// lock opens a folder and takes its lock, unless another has it or removed the folder.
func lock(path string) (*os.File, error) {
	folder, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(folder.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		_ = folder.Close()

		return nil, err
	}

	return folder, nil
}

// isOurs reports whether the file belongs to the user of this process.
func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)

	return ok && int(stat.Uid) == os.Getuid()
}
