// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Command words keeps words out of the repository that do not say who acts, and words of
// which Kubernetes has another: go run ./hack/words
//
// It looks at every file that git knows, in prose, messages and names alike. What a release
// has said stays.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// avoided are words, by what says the same in plain words.
var avoided = []struct {
	words   *regexp.Regexp
	instead string
}{
	{word("nobody|somebody|anybody"), "say who: the user, another client, no pod"},
	{word("mend|mends|mended|mending"), "fix, repair"},
	{word("anew"), "again, recreate"},
	{word("lets? go|letting go"), "release, delete, allow"},
	{word("rid of"), "remove, delete"},
}

// word returns an expression for words in a sentence, where they may stand on two lines, and in
// names.
func word(alternatives string) *regexp.Regexp {
	upper := func(text string) string { return strings.ToUpper(strings.TrimSpace(text)) }
	begins := regexp.MustCompile(`(^|\|)[a-z]`).ReplaceAllStringFunc(alternatives, strings.ToUpper)
	name := regexp.MustCompile(` [a-z]`).ReplaceAllStringFunc(alternatives, upper)
	exported := regexp.MustCompile(`\b[a-z]`).ReplaceAllStringFunc(name, upper)
	return regexp.MustCompile(strings.Join([]string{
		`\b(?:` + strings.ReplaceAll(alternatives+"|"+begins, " ", `[\s/#*-]+`) + `)\b`,
		`\b(?:` + name + `)[A-Z]`,
		`(?:\b|[a-z0-9])(?:` + exported + `)(?:[A-Z]|\b)`,
	}, "|"))
}

// released are files that a release had, for tests of upgrades.
var released = regexp.MustCompile(`testdata/.*\b\d+\.\d+\.\d+\.`)

// user is the user of Unix who has no rights.
var user = regexp.MustCompile(`[",]nobody["\\]`)

// place is where a word is.
type place struct {
	line           int
	found, instead string
}

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

// run looks at all files of the repository at root, and prints each place.
func run(root string) error {
	list, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", root, err)
	}
	count := 0
	for path := range strings.SplitSeq(strings.Trim(string(list), "\x00"), "\x00") {
		if strings.HasPrefix(path, "hack/words/") || released.MatchString(path) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path)) //nolint:gosec // a file of this repository
		if errors.Is(err, os.ErrNotExist) {
			continue // It is about to be deleted.
		}
		if err != nil {
			return err
		}
		for _, p := range places(path, text) {
			fmt.Printf("%s:%d: %q; instead: %s\n", path, p.line, p.found, p.instead)
			count++
		}
	}
	if count > 0 {
		return fmt.Errorf("%d places have words that this repository does without", count)
	}
	return nil
}

// places returns where a file has such words.
func places(path string, text []byte) []place {
	if path == "CHANGELOG.md" {
		text = unreleased(text)
	}
	text = user.ReplaceAllFunc(text, func(name []byte) []byte { return bytes.Repeat([]byte(" "), len(name)) })
	var all []place
	for _, a := range avoided {
		for _, at := range a.words.FindAllIndex(text, -1) {
			all = append(all, place{bytes.Count(text[:at[0]], []byte("\n")) + 1, string(text[at[0]:at[1]]), a.instead})
		}
	}
	return all
}

// unreleased returns what comes before the first release of a changelog.
func unreleased(text []byte) []byte {
	const release = "\n## ["
	_, rest, _ := bytes.Cut(text, []byte(release))
	if i := bytes.Index(rest, []byte(release)); i >= 0 {
		return text[:len(text)-len(rest)+i]
	}
	return text
}
