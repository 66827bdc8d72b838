// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// ownFields are fields of our kinds that no workload of Kubernetes has.
var ownFields = regexp.MustCompile(`podUpdatePolicy|inPlaceUpdateStrategy|podDisruptionBudget [A-Z]|volumeClaimUpdateStrategy`)

// What is said of workloads of Kubernetes names no field that they lack: the packages that
// say it have such names in one file, which knows the kind.
func TestMessagesNameNoFieldsOfOtherKinds(t *testing.T) {
	for _, folder := range []string{".", "../executor", "../../inplace", "../../resize"} {
		paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		NewWithT(t).Expect(paths).NotTo(BeEmpty())
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") || path == "../../inplace/spelling.go" {
				continue
			}
			for _, text := range textsIn(t, path) {
				if ownFields.MatchString(text) {
					t.Errorf("%s says %q", path, text)
				}
			}
		}
	}
}

// textsIn returns the texts in the code of a file, but for the tags of fields.
func textsIn(t *testing.T, path string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var texts []string
	ast.Inspect(file, func(node ast.Node) bool {
		if _, isField := node.(*ast.Field); isField {
			return false
		}
		if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, err := strconv.Unquote(literal.Value)
			NewWithT(t).Expect(err).NotTo(HaveOccurred())
			texts = append(texts, text)
		}
		return true
	})
	return texts
}
