// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// walk returns how many functions in how many files an image update of a CloneSet runs through,
// in the simulation: those of the planner and of the controllers.
func walk(root string) (string, error) {
	folder, err := os.MkdirTemp("", "structure-walk-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is a temporary folder
	profile := filepath.Join(folder, "profile")
	if _, err := output(root, "go", "test", "./test/sim", "-run", "^TestCloneSets$/^in_place$", "-count=1",
		"-coverpkg=./inplace/...,./controllers/...", "-coverprofile="+profile); err != nil {
		return "", err
	}
	report, err := output(root, "go", "tool", "cover", "-func="+profile)
	if err != nil {
		return "", err
	}
	functions, files := 0, map[string]bool{}
	for line := range strings.Lines(report) {
		fields := strings.Fields(line)
		const columns = 3 // file.go:12:, name, 87.5%
		if len(fields) != columns || fields[2] == "0.0%" || fields[0] == "total:" {
			continue
		}
		file, _, _ := strings.Cut(fields[0], ":")
		functions, files[file] = functions+1, true
	}
	return fmt.Sprintf("%d functions in %d files", functions, len(files)), nil
}

// words returns how many places have words that hack/words keeps out, as it is now.
func words(root string) (string, error) {
	folder, err := os.MkdirTemp("", "structure-words-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is a temporary folder
	linter := filepath.Join(folder, "words")
	if _, err := output(".", "go", "build", "-o", linter, "./hack/words"); err != nil {
		return "", err
	}
	for _, step := range [][]string{{"git", "init", "-q"}, {"git", "add", "-A"}} {
		if root == "." {
			break
		}
		if _, err := output(root, step[0], step[1:]...); err != nil {
			return "", err
		}
	}
	found, err := output(root, linter)
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return "", err
	}
	return fmt.Sprint(strings.Count(found, "\n")), nil
}

// output returns what a command prints in a folder.
func output(folder, name string, args ...string) (string, error) {
	command := exec.Command(name, args...) //nolint:gosec // the commands of this file
	command.Dir = folder
	errs := bytes.Buffer{}
	command.Stderr = &errs
	printed, err := command.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, errs.String(), printed)
	}
	return string(printed), err
}
