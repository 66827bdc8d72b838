// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/insitu-dev/insitu/inplace"
)

// reasonsIn returns the values of the constants of a package whose names begin with
// Reason, by their names.
func reasonsIn(t *testing.T, folder string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, path := range files {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "Reason") {
				return true
			}
			if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
				reasons[spec.Names[0].Name], _ = strconv.Unquote(literal.Value)
			}
			return true
		})
	}
	return reasons
}

// Whoever searches for the word of a blocker finds it in the condition and in the event.
func TestEveryReasonIsTheSameInBlockersConditionsAndEvents(t *testing.T) {
	declared := map[string]string{}
	for _, folder := range []string{"../../inplace", "../../volumes", "../../volumes/recreate", "../../apis/apps/v1beta1"} {
		for name, reason := range reasonsIn(t, folder) {
			t.Run(reason, func(t *testing.T) {
				g := NewWithT(t)
				g.Expect(reason).To(MatchRegexp("^[A-Z][A-Za-z]*$"), "a reason of a condition is one word")
				g.Expect(declared).NotTo(HaveKey(reason), "%s has another meaning in another package", name)
				declared[reason] = name

				plan := stuckPods(0, 1)
				plan.Blockers[0].Reason = reason
				stall := FindStall(plan, nil)
				after, told := reported(t, plan, nil, nil)
				g.Expect(after).To(HaveLen(1))
				g.Expect(after[0].Reason).To(Equal(reason), "blocker")
				g.Expect(after[0].Step).To(Equal(string(inplace.Stuck)))
				g.Expect(stall).To(Equal(Stall{true, reason, "pod sample-0: " + after[0].Message}), "condition")
				g.Expect(told).To(Equal([]string{"Warning " + stall.Reason + " " + stall.Message}), "event")
			})
		}
	}
	if len(declared) < 60 {
		t.Errorf("found %d reasons, and there are more", len(declared))
	}
}
