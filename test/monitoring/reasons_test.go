// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// Reasons of claims that raise no alert: they pass by themselves, or a user asked for
// them.
var passing = []string{
	"ClaimMissing", "ClaimTerminating", "ClaimNotBound", "ClaimChanging", "ClaimExpanding", "ClaimModifying",
	"ClaimRecreating", "ClaimRestoring", "SnapshotNotReady", "VolumeAttached", "VolumeNotReady", "UndoWaits", "RecreateUndone",
}

// Reasons of sizes that raise no alert.
var passingSizes = []string{"ResizeInProgress", "ResizeDeferred", "ResizeUnsupported"}

// TestReasonsOfClaims holds that whoever adds a reason says whether it raises an alert.
func TestReasonsOfClaims(t *testing.T) {
	g := NewWithT(t)
	var reasons []string
	for _, folder := range []string{"../../volumes", "../../volumes/recreate"} {
		reasons = append(reasons, constants(t, folder, "Reason")...)
	}
	// A pod that could not mount its volume any more waits for its claim, too.
	reasons = append(reasons, "VolumeNotMountable")

	g.Expect(slices.Concat(reasonsOf(t, "workload:insitu_claims_blocked:max"), passing)).To(ConsistOf(reasons))
}

// TestReasonsOfSizes does so for sizes.
func TestReasonsOfSizes(t *testing.T) {
	g := NewWithT(t)
	reasons := slices.Concat(constants(t, "../../inplace", "ReasonResize"), constants(t, "../../resize", ""))
	reasons = slices.DeleteFunc(reasons, func(reason string) bool { return !strings.HasPrefix(reason, "Resize") })

	g.Expect(slices.Concat(reasonsOf(t, "workload:insitu_resizes_refused:max"), passingSizes)).To(ConsistOf(reasons))
}

// reasonsOf returns the reasons that something recorded is made of.
func reasonsOf(t *testing.T, record string) []string {
	t.Helper()
	for _, r := range rules(t) {
		if match := regexp.MustCompile(`reason=~"([^"]+)"`).FindStringSubmatch(r.Expr); r.Record == record && match != nil {
			return strings.Split(match[1], "|")
		}
	}
	t.Fatalf("no rule records %s by reason", record)
	return nil
}

// constants returns the values of the string constants of a package whose names have
// a prefix.
func constants(t *testing.T, folder, prefix string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range parsed.Decls {
			if constant, ok := declaration.(*ast.GenDecl); ok && constant.Tok == token.CONST {
				values = append(values, valuesOf(t, constant, prefix)...)
			}
		}
	}
	return values
}

func valuesOf(t *testing.T, constant *ast.GenDecl, prefix string) []string {
	t.Helper()
	var values []string
	for _, spec := range constant.Specs {
		spec, ok := spec.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, prefix) {
			continue
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, value)
	}
	return values
}
