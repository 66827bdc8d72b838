// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// sharedLines returns how many significant lines the packages of StatefulSets and CloneSets have
// in common.
func sharedLines(root string) (int, error) {
	ours, err := significant(root, "controllers/statefulset")
	if err != nil {
		return 0, err
	}
	theirs, err := significant(root, "controllers/cloneset")
	if err != nil {
		return 0, err
	}
	left, shared := map[string]int{}, 0
	for _, line := range theirs {
		left[line]++
	}
	for _, line := range ours {
		if left[line] > 0 {
			left[line]--
			shared++
		}
	}
	return shared, nil
}

func linesOfBoth(root string) (int, error) {
	ours, err := significant(root, "controllers/statefulset")
	if err != nil {
		return 0, err
	}
	theirs, err := significant(root, "controllers/cloneset")
	return len(ours) + len(theirs), err
}

// linesOfPool returns how many significant lines the smallest kind has that package engine
// drives.
func linesOfPool(root string) (int, error) {
	lines, err := significant(root, "test/sim/pool")
	return len(lines), err
}

// significant returns the lines of a package that say something: no comments, imports and tests,
// and nothing as short as a brace. A package that is not there has none.
func significant(root, folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path) //nolint:gosec // a file of this repository
		if err != nil {
			return nil, err
		}
		code := string(text)
		if start := strings.Index(code, "import ("); start >= 0 {
			code = code[:start] + code[start+strings.Index(code[start:], "\n)"):]
		}
		for line := range strings.Lines(code) {
			const least = 12
			line = strings.TrimSpace(line)
			if len(line) >= least && !strings.HasPrefix(line, "//") && !strings.HasPrefix(line, "package") {
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// planEdits returns how many places change a plan that inplace.MakePlan has made.
func planEdits(root string) (int, error) {
	fields := []string{"Moves", "Blockers", "Recheck", "CannotDrain"}
	return count(root, []string{"controllers"}, func(_ string, node ast.Node) int {
		assignment, is := node.(*ast.AssignStmt)
		if !is {
			return 0
		}
		edits := 0
		for _, to := range assignment.Lhs {
			// plan.Moves, s.plan.Blockers[i].State
			for field := range selectors(to) {
				base, isSelector := field.X.(*ast.SelectorExpr)
				name, isName := field.X.(*ast.Ident)
				isPlan := isSelector && strings.EqualFold(base.Sel.Name, "plan") || isName && strings.EqualFold(name.Name, "plan")
				if isPlan && slices.Contains(fields, field.Sel.Name) {
					edits++
				}
			}
		}
		return edits
	})
}

// selectors returns the selectors of an expression, the outermost first.
func selectors(expression ast.Expr) func(yield func(*ast.SelectorExpr) bool) {
	return func(yield func(*ast.SelectorExpr) bool) {
		for {
			switch e := expression.(type) {
			case *ast.SelectorExpr:
				if !yield(e) {
					return
				}
				expression = e.X
			case *ast.IndexExpr:
				expression = e.X
			default:
				return
			}
		}
	}
}

// ladders returns how many functions decide how far a workload of ours has come: such a function
// knows the reason of a scale and that of an update.
func ladders(root string) (int, error) {
	return count(root, []string{"controllers"}, func(_ string, node ast.Node) int {
		function, is := node.(*ast.FuncDecl)
		if !is {
			return 0
		}
		named := map[string]bool{}
		ast.Inspect(function, func(inner ast.Node) bool {
			if selector, is := inner.(*ast.SelectorExpr); is {
				named[selector.Sel.Name] = true
			}
			return true
		})
		if named["ReasonScaling"] && named["ReasonUpdating"] {
			return 1
		}
		return 0
	})
}

// rooms are where a kind is at home: its controller, its rows in the tables of kinds, and what
// builds it for tests.
var rooms = []string{
	"controllers/cloneset/", "cmd/kubectl-insitu/kinds/", "test/builders/", "test/sim/cloneset.go", "test/sim/kinds.go", "test/bench/kinds.go",
	"test/gitops/builtin.go", // what the scripts of Argo CD itself ask
	"hack/structure/",        // this question
}

// questions returns how many places outside of these ask whether something is a CloneSet. As many
// ask for each other kind, and would ask for a new one.
func questions(root string) (int, error) {
	return count(root, []string{"cmd", "controllers", "hack", "test"}, func(path string, node ast.Node) int {
		if slices.ContainsFunc(rooms, func(room string) bool { return strings.HasPrefix(path, room) }) {
			return 0
		}
		asked := 0
		switch n := node.(type) {
		case *ast.CaseClause:
			for _, value := range n.List {
				asked += named(value)
			}
		case *ast.TypeAssertExpr:
			asked += named(n.Type)
		case *ast.BinaryExpr:
			asked += named(n.X) + named(n.Y)
		}
		return asked
	})
}

// named returns 1 for "CloneSet" and *v1beta1.CloneSet.
func named(expression ast.Expr) int {
	if pointer, is := expression.(*ast.StarExpr); is {
		expression = pointer.X
		if selector, is := expression.(*ast.SelectorExpr); is && selector.Sel.Name == "CloneSet" {
			return 1
		}
	}
	if literal, is := expression.(*ast.BasicLit); is && literal.Value == `"CloneSet"` {
		return 1
	}
	return 0
}

// count adds up what is counted in the syntax of all files in folders that are no tests.
func count(root string, folders []string, of func(path string, node ast.Node) int) (int, error) {
	total := 0
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(node ast.Node) bool {
				total += of(name, node)
				return true
			})
			return nil
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return total, nil
}
