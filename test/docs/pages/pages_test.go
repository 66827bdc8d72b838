// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/insitu-dev/insitu/test/docs/page"
)

// root is the folder of the repository, from that of this package.
const root = "../../.."

func readAll(t *testing.T) map[string]*page.Page {
	t.Helper()
	pages, err := Read(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 2 {
		t.Fatalf("found %d pages: is docs/ somewhere else?", len(pages))
	}
	return pages
}

// Each page is run, or it is said why not.
func TestPagesAreExecutedOrSayWhyNot(t *testing.T) {
	pages := readAll(t)
	for name, page := range pages {
		why, listed := unexecuted[name]
		switch {
		case page.Executed() && listed:
			t.Errorf("%s has commands that are run; it is listed in pages.go as one that %s", name, why)
		case !page.Executed() && !listed:
			t.Errorf("%s has no command that is run: write one, or say in pages.go why it has none", name)
		}
	}
	for name := range unexecuted {
		if pages[name] == nil {
			t.Errorf("%s is listed in pages.go, and there is no such page", name)
		}
	}
}

// What a reader is told to save is used by a command after it.
func TestFilesAreUsed(t *testing.T) {
	for name, page := range readAll(t) {
		for i, block := range page.Blocks {
			if block.File != "" && !isUsed(block.File, page.Blocks[i+1:]) {
				t.Errorf("%s:%d: no command after the file %s names it", name, block.Line, block.File)
			}
		}
	}
}

func isUsed(file string, blocks []page.Block) bool {
	for _, block := range blocks {
		for _, step := range block.Steps {
			if strings.Contains(step.Command, file) {
				return true
			}
		}
	}
	return false
}

// A link between pages leads to something.
func TestLinksResolve(t *testing.T) {
	pages := readAll(t)
	for name, page := range pages {
		for _, link := range page.Links {
			if err := resolve(pages, name, link.Target); err != nil {
				t.Errorf("%s:%d: the link %s: %v", name, link.Line, link.Target, err)
			}
		}
	}
}

func resolve(pages map[string]*page.Page, from, target string) error {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return nil // of others: not asked for, the network is not part of a unit test
	}
	path, anchor, _ := strings.Cut(target, "#")
	to := from
	if path != "" {
		to = filepath.Join(filepath.Dir(from), path)
	}
	if _, err := os.Stat(filepath.Join(root, to)); err != nil {
		return errors.New("there is no such file")
	}
	if anchor != "" && pages[to] != nil && !pages[to].Anchors[anchor] {
		return fmt.Errorf("%s has no heading of that anchor", to)
	}
	return nil
}

// What a page shows as YAML or JSON is that.
func TestBlocksParse(t *testing.T) {
	for name, page := range readAll(t) {
		for _, block := range page.Blocks {
			if err := parse(block); err != nil {
				t.Errorf("%s:%d: %v", name, block.Line, err)
			}
		}
	}
}

func parse(block page.Block) error {
	if block.Language == "json" {
		var value any
		return json.Unmarshal([]byte(block.Text), &value)
	}
	if block.Language != "yaml" {
		return nil
	}
	decoder := yaml.NewYAMLToJSONDecoder(bytes.NewBufferString(block.Text))
	for {
		var value any
		if err := decoder.Decode(&value); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestResolve(t *testing.T) {
	pages := map[string]*page.Page{
		"README.md":      {Anchors: map[string]bool{"use-it": true}},
		"docs/native.md": {Anchors: map[string]bool{"try-it": true}},
	}
	for name, test := range map[string]struct{ from, target, want string }{
		"a page":                     {"README.md", "docs/native.md", ""},
		"a heading of it":            {"README.md", "docs/native.md#try-it", ""},
		"the way back":               {"docs/native.md", "../README.md#use-it", ""},
		"a heading of the same page": {"docs/native.md", "#try-it", ""},
		"a folder":                   {"docs/native.md", "../config", ""},
		"another site":               {"docs/native.md", "https://example.org/native.md", ""},
		"no page":                    {"docs/native.md", "docs/native.md", "there is no such file"},
		"no heading":                 {"README.md", "docs/native.md#use-it", "docs/native.md has no heading of that anchor"},
		"no heading of the page":     {"docs/native.md", "#use-it", "docs/native.md has no heading of that anchor"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			err := resolve(pages, test.from, test.target)
			if test.want == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(test.want))
		})
	}
}
