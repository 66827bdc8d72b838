// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/test/docs/page"
)

// evidence is a link from a page to a test, by the name of the test:
// [comes back from an image that does not exist](../test/e2e/inplace_test.go).
var evidence = regexp.MustCompile(`\[([^\]]+)\]\(\.\./([^)]+_test\.go)\)`)

// A claim that a page makes is shown by the test that it names: the test is there.
func TestClaimsNameTestsThatExist(t *testing.T) {
	g := NewWithT(t)
	found, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	g.Expect(err).NotTo(HaveOccurred())
	claims := 0
	for _, path := range found {
		text, err := os.ReadFile(path)
		g.Expect(err).NotTo(HaveOccurred())
		for _, link := range evidence.FindAllStringSubmatch(string(text), -1) {
			name, file := link[1], link[2]
			test, err := os.ReadFile(filepath.Join(root, file))
			g.Expect(err).NotTo(HaveOccurred(), "%s names %s", path, file)
			if !strings.HasPrefix(name, "test/") && !strings.Contains(string(test), name) {
				t.Errorf("%s: there is no test %q in %s", path, name, file)
			}
			claims++
		}
	}
	g.Expect(claims).To(BeNumerically(">", 30))
}

// In the table of Insitu, each row has its evidence.
func TestEachRowOfTheComparisonIsShown(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "comparison.md"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for line := range strings.Lines(string(text)) {
		isRow := strings.HasPrefix(line, "| ") && !strings.Contains(line, "Shown by")
		if isRow && !evidence.MatchString(line) {
			t.Errorf("docs/comparison.md: no test shows %s", line)
		}
	}
}

// Whoever uninstalls Insitu is told of each definition that stays, and how to delete it.
func TestEachDefinitionIsUninstalled(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "quickstart.md"))
	g.Expect(err).NotTo(HaveOccurred())
	_, deletion, _ := strings.Cut(string(text), "kubectl delete crd ")
	deletion, _, _ = strings.Cut(deletion, "\n")
	definitions, err := filepath.Glob(filepath.Join(root, "config", "crd", "*.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(definitions).NotTo(BeEmpty())
	for _, file := range definitions {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		name := plural + "." + group
		g.Expect(string(text)).To(ContainSubstring("[CustomResourceDefinition] " + name + "\n"))
		g.Expect(strings.Fields(deletion)).To(ContainElement(name), "kubectl delete crd")
	}
}

// Who uninstalls what kustomize has installed keeps the definitions, which would take all workloads
// with them, the namespace, and the policies, which release what is held.
func TestUninstallWithKustomize(t *testing.T) {
	g := NewWithT(t)
	listed := regexp.MustCompile(`(?m)^for part in (.*); do kubectl delete -k config/\$part; done$`).FindStringSubmatch(readText(t, "docs", "native-leaving.md"))
	g.Expect(listed).NotTo(BeNil())
	all := struct{ Resources []string }{}
	g.Expect(yaml.Unmarshal([]byte(readText(t, "config", "default", "kustomization.yaml")), &all)).To(Succeed())
	var parts []string
	for _, part := range all.Resources {
		if name, isFolder := strings.CutPrefix(part, "../"); isFolder && name != "crd" && name != "policies" {
			parts = append(parts, name)
		}
	}
	g.Expect(strings.Fields(listed[1])).To(ConsistOf(parts))
}

// Whoever looks for a page finds it in the index, and an example in that of examples.
func TestEachPageIsInTheIndex(t *testing.T) {
	pages := readAll(t)
	for name := range pages {
		index := "docs/README.md"
		if strings.Count(name, "/") > 1 {
			index = "examples/README.md"
		}
		listed := func(link page.Link) bool { return filepath.Join(filepath.Dir(index), link.Target) == name }
		if name != "README.md" && name != "docs/README.md" && !slices.ContainsFunc(pages[index].Links, listed) {
			t.Errorf("%s is not in %s", name, index)
		}
	}
}
