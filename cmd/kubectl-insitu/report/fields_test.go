// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/insitu-dev/insitu/cmd/kubectl-insitu/report"
)

func TestChangesAreToldByField(t *testing.T) {
	long := strings.Repeat("x", 100)
	for _, c := range []struct {
		name, before, after string
		told                []string
	}{
		{"nothing", `a: {b: 1, c: [1, 2]}`, `a: {b: 1, c: [1, 2]}`, nil},
		{"a number", `spec: {replicas: 3}`, `spec: {replicas: 5}`, []string{"spec.replicas: 3 -> 5"}},
		{"a text, quoted", `a: "x\ty"`, `a: "x\u001b[31m"`, []string{`a: "x\ty" -> "x\x1b[31m"`}},
		{"a new field", `{}`, `a: {b: true}`, []string{`a: (none) -> {"b":true}`}},
		{"a removed field", `a: {b: true, c: 1}`, `a: {c: 1}`, []string{`a.b: true -> (none)`}},
		{"several, sorted", `{b: 1, a: 1}`, `{b: 2, a: 2}`, []string{"a: 1 -> 2", "b: 1 -> 2"}},
		{
			"items with names, in whatever order", `c: [{name: x, image: a}, {name: z, image: b}]`, `c: [{name: z, image: c}, {name: x, image: a}]`,
			[]string{`c[z].image: "b" -> "c"`},
		},
		{
			"items that come and go", `c: [{name: x, image: a}]`, `c: [{name: z, image: b}]`,
			[]string{`c[x]: {"image":"a","name":"x"} -> (none)`, `c[z]: (none) -> {"image":"b","name":"z"}`},
		},
		{"claim templates", `t: [{metadata: {name: data}, spec: {size: 1}}]`, `t: [{metadata: {name: data}, spec: {size: 2}}]`, []string{"t[data].spec.size: 1 -> 2"}},
		{"items without names", `a: [x, z]`, `a: [x]`, []string{`a: ["x","z"] -> ["x"]`}},
		{"items of the same name", `c: [{name: x}, {name: x}]`, `c: [{name: x}]`, []string{`c: [{"name":"x"},{"name":"x"}] -> [{"name":"x"}]`}},
		{"a list that was empty", `a: []`, `a: [{name: x}]`, []string{`a[x]: (none) -> {"name":"x"}`}},
		{"another kind of value", `a: {b: 1}`, `a: text`, []string{`a: {"b":1} -> "text"`}},
		{"keys with dots and slashes", `a: {example.io/b.c: x}`, `a: {example.io/b.c: z}`, []string{`a[example.io/b.c]: "x" -> "z"`}},
		{"too long", `a: {b: c}`, `a: {` + `b: [` + long + `]}`, []string{`a.b: "c" -> ["` + strings.Repeat("x", 78) + "..."}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			var before, after map[string]any
			g.Expect(yaml.Unmarshal([]byte(c.before), &before)).To(Succeed())
			g.Expect(yaml.Unmarshal([]byte(c.after), &after)).To(Succeed())
			g.Expect(report.Changes("", before, after)).To(Equal(c.told))
		})
	}
}

func TestLongValuesAreCutBetweenCharacters(t *testing.T) {
	g := NewWithT(t)
	before, after := map[string]any{"a": []any{strings.Repeat("ö", 60)}}, map[string]any{"a": strings.Repeat("ö", 200)}
	told := report.Changes("", before, after)
	g.Expect(told).To(HaveLen(1))
	g.Expect(utf8.ValidString(told[0])).To(BeTrue(), "%q", told[0])
	g.Expect(utf8.RuneCountInString(told[0])).To(BeNumerically("<", 200))
}
