// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// passedFile keeps which suites have passed.
func passedFile() string { return filepath.Join(out, "passed.json") }

// passed are the suites that have passed with the files of one commit, at one level.
type passed struct {
	Tree    string   `json:"tree"`
	Level   string   `json:"level"`
	Results []result `json:"results"`
}

// readPassed returns the suites that have passed with the files as they are; none if they have
// changed since.
func readPassed() (*passed, error) {
	changes, err := git("status", "--porcelain")
	if err != nil {
		return nil, err
	}
	if changes != "" {
		return nil, fmt.Errorf("a run can only go on with committed files, or what passed says nothing of them; commit:\n%s", changes)
	}
	tree, err := git("rev-parse", "HEAD^{tree}")
	if err != nil {
		return nil, err
	}
	now := &passed{Tree: tree, Level: os.Getenv("LEVEL")}
	raw, err := os.ReadFile(passedFile())
	if errors.Is(err, fs.ErrNotExist) {
		return now, nil
	}
	before := &passed{}
	if err == nil {
		err = json.Unmarshal(raw, before)
	}
	if err != nil {
		return nil, fmt.Errorf("read which suites have passed: %w", err)
	}
	if before.Tree != now.Tree || before.Level != now.Level {
		return now, nil
	}

	return before, nil
}

// of returns what a suite came to when it passed, and whether it has. p may be nil: none has.
func (p *passed) of(suite string) (result, bool) {
	if p == nil {
		return result{}, false
	}
	i := slices.IndexFunc(p.Results, func(r result) bool { return r.Suite == suite })
	if i < 0 {
		return result{}, false
	}

	return p.Results[i], true
}

// add keeps a suite that has passed. What suites share is prepared each time.
func (p *passed) add(done result) error {
	if p == nil || !done.isGood() || done.Suite == "prepare" {
		return nil
	}
	p.Results = append(p.Results, done)
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}

	return os.WriteFile(passedFile(), append(raw, '\n'), 0o600)
}

// git returns what a command of git prints.
func git(args ...string) (string, error) {
	printed, err := exec.Command("git", args...).Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}

	return strings.TrimSpace(string(printed)), nil
}
