// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/controllers/metrics"
)

func board(t *testing.T) Board {
	t.Helper()
	b, err := ReadBoard(boardFile)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// chosen is the data source that the user chooses.
var chosen = Datasource{Type: "prometheus", UID: "${datasource}"}

func TestBoard(t *testing.T) {
	g := NewWithT(t)
	b := board(t)

	g.Expect(b.UID).To(Equal("insitu"), "links to the board have it")
	ids, titles := sets.New[int](), sets.New[string]()
	for _, panel := range b.Panels {
		g.Expect(panel.ID).NotTo(BeZero(), panel.Title)
		g.Expect(ids.Has(panel.ID)).To(BeFalse(), "two panels have ID %d", panel.ID)
		ids.Insert(panel.ID)
		g.Expect(panel.Title).NotTo(BeEmpty())
		g.Expect(titles.Has(panel.Title)).To(BeFalse(), "two panels are called %q", panel.Title)
		titles.Insert(panel.Title)
		if panel.Type != "row" {
			expectToShow(g, panel)
		}
	}
}

// expectToShow looks at a panel that is no heading.
func expectToShow(g Gomega, panel Panel) {
	g.Expect(panel.Description).NotTo(BeEmpty(), panel.Title)
	g.Expect(panel.FieldConfig.Defaults.Unit).NotTo(BeEmpty(), panel.Title)
	g.Expect(panel.Datasource).To(Equal(chosen), panel.Title)
	g.Expect(panel.Targets).NotTo(BeEmpty(), panel.Title)
	refs := sets.New[string]()
	for _, target := range panel.Targets {
		g.Expect(target.Expr).NotTo(BeEmpty(), panel.Title)
		g.Expect(target.Datasource).To(Equal(chosen), panel.Title)
		g.Expect(target.Instant).NotTo(Equal(target.Range), "%s: of a moment or of a range", panel.Title)
		g.Expect(target.RefID).NotTo(BeEmpty(), panel.Title)
		g.Expect(refs.Has(target.RefID)).To(BeFalse(), "%s: two queries are called %s", panel.Title, target.RefID)
		refs.Insert(target.RefID)
		if target.Range {
			g.Expect(target.LegendFormat).NotTo(BeEmpty(), panel.Title)
		}
	}
}

func TestPanelsDoNotOverlap(t *testing.T) {
	g := NewWithT(t)
	taken := map[[2]int]string{}
	for _, panel := range board(t).Panels {
		at := panel.GridPos
		g.Expect(at.W*at.H).To(BeNumerically(">", 0), panel.Title)
		g.Expect(at.X+at.W).To(BeNumerically("<=", 24), panel.Title)
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				g.Expect(taken[[2]int{x, y}]).To(BeEmpty(), "%s is in the way of %s", taken[[2]int{x, y}], panel.Title)
				taken[[2]int{x, y}] = panel.Title
			}
		}
	}
}

func TestVariables(t *testing.T) {
	g := NewWithT(t)
	known := sets.New[string]()
	for _, variable := range board(t).Templating.List {
		known.Insert("$" + variable.Name)
		if variable.Type == "query" {
			g.Expect(variable.AllValue).To(Equal(".*"), variable.Name)
			g.Expect(variable.Datasource).To(Equal(chosen), variable.Name)
		}
	}
	known.Insert("$__rate_interval", "$__range")
	used := sets.New[string]()
	for _, panel := range board(t).Panels {
		for _, target := range panel.Targets {
			used.Insert(regexp.MustCompile(`\$\w+`).FindAllString(target.Expr, -1)...)
		}
	}
	used.Insert("$datasource")
	g.Expect(used.UnsortedList()).To(ConsistOf(known.UnsortedList()))
	for _, query := range board(t).Queries("1m") {
		g.Expect(query.Expr).NotTo(ContainSubstring("$"), query.Panel)
	}
}

// TestQueriesCanBeRead has promtool read every query, as if it were a rule.
func TestQueriesCanBeRead(t *testing.T) {
	g := NewWithT(t)
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	asRules := group{Name: "board"}
	for i, query := range board(t).Queries("1m") {
		asRules.Rules = append(asRules.Rules, rule{Record: fmt.Sprintf("board:query:%d", i), Expr: query.Expr})
	}
	data, err := yaml.Marshal(map[string]any{"groups": []group{asRules}})
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(t.TempDir(), "board.yaml")
	g.Expect(os.WriteFile(file, data, 0o600)).To(Succeed())

	output, err := promtool(t, ".", "check", "rules", file)
	g.Expect(err).NotTo(HaveOccurred(), output)
}

// TestMetricsAreThere holds that alerts and board name metrics that the manager has, and
// the board all of them.
func TestMetricsAreThere(t *testing.T) {
	g := NewWithT(t)
	onBoard, inRules := sets.New[string](), sets.New[string]()
	for _, query := range board(t).Queries("1m") {
		onBoard.Insert(namesIn(query.Expr)...)
	}
	for _, r := range rules(t) {
		inRules.Insert(namesIn(r.Expr + r.Annotations["description"])...)
	}

	g.Expect(onBoard.UnsortedList()).To(ConsistOf(metricNames().UnsortedList()))
	g.Expect(metricNames().IsSuperset(inRules)).To(BeTrue(), "%v", inRules.Difference(metricNames()))
	g.Expect(inRules).NotTo(BeEmpty())
}

// namesIn returns the metrics of Insitu that a text names, but not what is recorded.
func namesIn(text string) []string {
	var names []string
	for _, name := range regexp.MustCompile(`[\w:]*insitu_\w+`).FindAllString(text, -1) {
		if strings.HasPrefix(name, "insitu_") {
			names = append(names, strings.TrimSuffix(name, "_bucket"))
		}
	}
	return names
}

// metricNames returns the names of all metrics of Insitu.
func metricNames() sets.Set[string] {
	names := sets.New[string]()
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		for _, collector := range metrics.New().Collectors(metrics.Build{}) {
			collector.Describe(descs)
		}
	}()
	for desc := range descs {
		names.Insert(regexp.MustCompile(`insitu_\w+`).FindString(desc.String()))
	}
	return names
}
