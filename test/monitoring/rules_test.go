// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

const (
	rulesFile = "../../config/prometheus/rules.yaml"
	boardFile = "../../config/grafana/insitu.json"
	alertsDoc = "../../docs/alerts.md"
)

// promtool runs promtool in a folder and returns what it printed.
func promtool(t *testing.T, folder string, args ...string) (string, error) {
	t.Helper()
	path, err := tool("promtool")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, args...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	return string(output), err
}

// TestRules runs the cases of rules_test.yaml beside the rules.
func TestRules(t *testing.T) {
	g := NewWithT(t)
	output, err := promtool(t, filepath.Dir(rulesFile), "check", "rules", "--lint-fatal", "rules.yaml")
	g.Expect(err).NotTo(HaveOccurred(), output)
	output, err = promtool(t, filepath.Dir(rulesFile), "test", "rules", "rules_test.yaml")
	g.Expect(err).NotTo(HaveOccurred(), output)
}

// rule is an alert, or what is recorded for one.
type rule struct {
	Alert       string            `json:"alert,omitempty"`
	Record      string            `json:"record,omitempty"`
	Expr        string            `json:"expr"`
	For         string            `json:"for,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func rules(t *testing.T) []rule {
	t.Helper()
	data, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		t.Fatal(err)
	}
	var all []rule
	for _, group := range file.Groups {
		all = append(all, group.Rules...)
	}
	return all
}

// TestAlertsSayWhatToDo holds what everybody who is woken up needs, and that there are
// cases for each alert: some in which it fires, and some in which it does not.
func TestAlertsSayWhatToDo(t *testing.T) {
	g := NewWithT(t)
	doc, cases := read(t, alertsDoc), casesOf(t)
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		g.Expect(r.Labels["severity"]).To(BeElementOf("warning", "critical"), r.Alert)
		g.Expect(r.Annotations["summary"]).NotTo(BeEmpty(), r.Alert)
		g.Expect(r.Annotations["description"]).To(MatchRegexp(`kubectl|maxConcurrentReconciles`), r.Alert)
		g.Expect(r.Annotations["runbook_url"]).To(HaveSuffix("/docs/alerts.md#"+strings.ToLower(r.Alert)), r.Alert)
		g.Expect(doc).To(ContainSubstring("\n## "+r.Alert+"\n"), "the section that runbook_url names")
		g.Expect(r.For).NotTo(BeEmpty(), "%s fires at every blip", r.Alert)
		if strings.Contains(r.Expr, "namespace") {
			g.Expect(r.Annotations["description"]).To(ContainSubstring(
				"kubectl insitu why {{ $labels.kind | toLower }}/{{ $labels.name }} -n {{ $labels.namespace }}"), r.Alert)
		}
		g.Expect(cases[r.Alert].fires).To(BeNumerically(">=", 1), r.Alert)
		g.Expect(cases[r.Alert].rests).To(BeNumerically(">=", 2), r.Alert)
	}
	sections := regexp.MustCompile(`(?m)^## (Insitu\w+)$`).FindAllStringSubmatch(doc, -1)
	for _, section := range sections {
		g.Expect(cases).To(HaveKey(section[1]), "an alert of the document that there is not")
	}
}

type caseCount struct{ fires, rests int }

// casesOf counts the cases of rules_test.yaml by alert.
func casesOf(t *testing.T) map[string]caseCount {
	t.Helper()
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name     string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "../../config/prometheus/rules_test.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	counts := map[string]caseCount{}
	for _, test := range file.Tests {
		for _, alert := range test.Alerts {
			count := counts[alert.Name]
			if len(alert.Expected) > 0 {
				count.fires++
			} else {
				count.rests++
			}
			counts[alert.Name] = count
		}
	}
	return counts
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
