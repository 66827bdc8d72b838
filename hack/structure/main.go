// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command structure counts what tells how well the code is cut, now and at earlier commits:
// go run ./hack/structure [commit ...]
//
// It prints a table with a column for each commit, and one for the files as they are. A commit
// is checked out into a temporary folder for that.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
)

// measure is a line of the table.
type measure struct {
	name  string
	count func(root string) (string, error)
}

var measures = []measure{
	{"lines that StatefulSet and CloneSet share", number(sharedLines)},
	{"significant lines of these two", number(linesOfBoth)},
	{"lines of the smallest kind", number(linesOfPool)},
	{"places that edit a plan", number(planEdits)},
	{"ladders of conditions", number(ladders)},
	{"places that ask for one kind", number(questions)},
	{"an image update runs through", walk},
	{"words to avoid", words},
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
}

// run prints the table for commits and the files as they are.
func run(commits []string) error {
	folder, err := os.MkdirTemp("", "structure-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // it is a temporary folder
	roots := make([]string, 0, len(commits)+1)
	for i, commit := range commits {
		root := filepath.Join(folder, strconv.Itoa(i))
		if err := checkOut(commit, root); err != nil {
			return err
		}
		roots = append(roots, root)
	}
	roots = append(roots, ".")
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "\t%s\n", strings.Join(append(commits, "now"), "\t"))
	for _, m := range measures {
		counts := make([]string, 0, len(roots))
		for _, root := range roots {
			count, err := m.count(root)
			if err != nil {
				return fmt.Errorf("%s of %s: %w", m.name, root, err)
			}
			counts = append(counts, count)
		}
		fmt.Fprintf(table, "%s\t%s\n", m.name, strings.Join(counts, "\t"))
	}
	return table.Flush()
}

// checkOut writes the files of a commit into a new folder.
func checkOut(commit, root string) error {
	if err := os.Mkdir(root, 0o700); err != nil {
		return err
	}
	archive := exec.Command("git", "archive", commit) //nolint:gosec // the user names the commit
	unpack := exec.Command("tar", "-x", "-C", root)   //nolint:gosec // a temporary folder
	archive.Stderr, unpack.Stderr = os.Stderr, os.Stderr
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return err
	}
	unpack.Stdin = pipe
	if err := unpack.Start(); err != nil {
		return err
	}
	if err := archive.Run(); err != nil {
		return fmt.Errorf("read commit %s: %w", commit, err)
	}
	return unpack.Wait()
}

func number(count func(root string) (int, error)) func(string) (string, error) {
	return func(root string) (string, error) {
		n, err := count(root)
		return strconv.Itoa(n), err
	}
}
