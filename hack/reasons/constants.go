// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// folders are the packages whose reasons people meet.
var folders = []string{
	"apis/apps/v1beta1", "inplace", "resize", "volumes", "volumes/recreate", "controllers/native",
}

// constant is a reason in the code.
type constant struct {
	folder, name, value, meaning string
}

// isReason matches the names of constants that are reasons, and of types of which all
// constants are.
var (
	isReason     = regexp.MustCompile(`^[Rr]eason[A-Z]`)
	isReasonType = regexp.MustCompile(`^\w*Reason$`)
)

// find returns the reasons of the packages, in the order in which they are declared.
func find(root string) ([]constant, error) {
	var found []constant
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			declared, err := reasonsIn(file)
			if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			for _, c := range declared {
				c.folder = folder
				found = append(found, c)
			}
		}
	}
	return found, nil
}

// reasonsIn returns the reasons that a file declares.
func reasonsIn(file *ast.File) ([]constant, error) {
	var found []constant
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok || !declaresReason(values) {
				continue
			}
			c, err := reasonOf(values.Names[0].Name, values, constants.Doc)
			if err != nil {
				return nil, err
			}
			found = append(found, c)
		}
	}
	return found, nil
}

// declaresReason tells reasons from other constants, by their names or their type.
func declaresReason(spec *ast.ValueSpec) bool {
	if typed, ok := spec.Type.(*ast.Ident); ok && isReasonType.MatchString(typed.Name) {
		return true
	}
	return isReason.MatchString(spec.Names[0].Name)
}

func reasonOf(name string, spec *ast.ValueSpec, group *ast.CommentGroup) (constant, error) {
	if len(spec.Values) != 1 {
		return constant{}, fmt.Errorf("%s has no value of its own", name)
	}
	literal, ok := spec.Values[0].(*ast.BasicLit)
	if !ok {
		return constant{}, fmt.Errorf("the value of %s is no text", name)
	}
	value, err := strconv.Unquote(literal.Value)
	if err != nil {
		return constant{}, fmt.Errorf("the value of %s is no text: %w", name, err)
	}
	doc := spec.Doc.Text()
	if doc == "" {
		doc = group.Text()
	}
	meaning := meaningIn(name, doc)
	if meaning == "" {
		return constant{}, fmt.Errorf("no comment says what %s means", name)
	}
	return constant{name: name, value: value, meaning: meaning}, nil
}

var (
	// beginning is how a comment begins that says what a constant means.
	beginning = regexp.MustCompile(`^(: | means that | is the reason of )`)
	// pointer is what a comment says to readers of the code alone.
	pointer = regexp.MustCompile(`,? see \[?[A-Z]\w+\.\w+\]?`)
)

// meaningIn returns what a comment says after the name of its constant.
func meaningIn(name, doc string) string {
	said := strings.TrimPrefix(strings.Join(strings.Fields(doc), " "), name)
	said = beginning.ReplaceAllString(said, "")
	return strings.TrimSuffix(pointer.ReplaceAllString(said, ""), ".")
}
