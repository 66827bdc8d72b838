// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// readText returns the text of a file of the repository.
func readText(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, path...)...))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// pageLink is a link of the index to a page.
var pageLink = regexp.MustCompile(`\]\(([a-z-]+\.md)\)`)

// Each page leads back to the index, and on to the page that is next there. Those that are
// generated as a whole do not.
func TestPagesLeadOnAndBack(t *testing.T) {
	var order []string
	for _, link := range pageLink.FindAllStringSubmatch(readText(t, "docs", "README.md"), -1) {
		if !slices.Contains(order, link[1]) {
			order = append(order, link[1])
		}
	}
	for i, name := range order {
		text := readText(t, "docs", name)
		if isGenerated(name, text) {
			continue
		}
		want := "\n---\n\n[All pages](README.md)"
		if i+1 < len(order) {
			want += fmt.Sprintf(" · next: [%[1]s](%[1]s)", order[i+1])
		}
		if !strings.HasSuffix(text, want+"\n") {
			t.Errorf("docs/%s does not end with %q", name, want)
		}
	}
}

// isGenerated reports whether a page is generated as a whole.
func isGenerated(name, text string) bool {
	return strings.Contains(text[:min(len(text), 300)], "Do not edit.") || name == "any-state-any-revision.md" || name == "api.md"
}

// A page is one task, or one subject. Who writes more of it parts it.
func TestPagesAreShort(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for _, page := range append(pages, filepath.Join(root, "CONTRIBUTING.md")) {
		text := readText(t, strings.TrimPrefix(page, root))
		if words := len(strings.Fields(text)); words > 1200 && !isGenerated(filepath.Base(page), text) {
			t.Errorf("%s has %d words; 1,200 are enough", filepath.Base(page), words)
		}
	}
}

// The index has six groups, so that a reader knows where to look.
func TestGroupsOfTheIndex(t *testing.T) {
	g := NewWithT(t)
	var groups []string
	for line := range strings.Lines(readText(t, "docs", "README.md")) {
		if group, is := strings.CutPrefix(line, "## "); is {
			groups = append(groups, strings.TrimSpace(group))
		}
	}
	g.Expect(groups).To(Equal([]string{"Start", "Tasks", "Concepts", "Reference", "Operations", "Internals"}))
}

// README.md is what a visitor reads in a minute.
func TestTheFrontPageIsShort(t *testing.T) {
	NewWithT(t).Expect(len(strings.Fields(readText(t, "README.md")))).To(BeNumerically("<=", 700))
}

// localLink is a link or a picture whose target is a file of the repository; blobLink is one by
// its address.
var (
	localLink = regexp.MustCompile(`(?:\]\(|src(?:set)?=")([^)"#:]+)[)"#]`)
	blobLink  = regexp.MustCompile(`https://github\.com/insitu-dev/insitu/blob/main/([A-Za-z0-9_./-]+)`)
)

// Files at the root and in the chart link to files that are there, and README.md shows pictures that are.
func TestLinksOfOtherFiles(t *testing.T) {
	g := NewWithT(t)
	files, err := filepath.Glob(filepath.Join(root, "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(len(files)).To(BeNumerically(">=", 9))
	pictures := 0
	for _, file := range files {
		for _, link := range localLink.FindAllStringSubmatch(readText(t, filepath.Base(file)), -1) {
			if _, err := os.Stat(filepath.Join(root, link[1])); err != nil {
				t.Errorf("%s links to %s: %v", filepath.Base(file), link[1], err)
			}
			if strings.HasPrefix(link[1], "docs/pictures/") && filepath.Base(file) == "README.md" {
				pictures++
			}
		}
	}
	g.Expect(pictures).To(Equal(4))
	for _, file := range []string{"charts/insitu/README.md", "charts/insitu/Chart.yaml", ".github/ISSUE_TEMPLATE/config.yml"} {
		links := blobLink.FindAllStringSubmatch(readText(t, file), -1)
		g.Expect(links).NotTo(BeEmpty(), file)
		for _, link := range links {
			g.Expect(filepath.Join(root, link[1])).To(BeARegularFile(), file)
		}
	}
	_, icon, _ := strings.Cut(readText(t, "charts", "insitu", "Chart.yaml"), "https://raw.githubusercontent.com/insitu-dev/insitu/main/")
	icon, _, _ = strings.Cut(icon, "\n")
	g.Expect(filepath.Join(root, icon)).To(BeARegularFile(), "the icon of the chart")
}
