// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

// Package page reads the pages of the documentation: what a reader is told to
// run, what that prints, which files are to be saved, and where links lead.
package page

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
)

// The words that an HTML comment before a block begins with.
const (
	fileMark        = "file:"
	notExecutedMark = "not executed:"
)

// Page is a page of the documentation.
type Page struct {
	// Blocks are its fenced blocks, in their order.
	Blocks []Block
	// Links are those of its text, with and without a scheme.
	Links []Link
	// Anchors are the fragments by which its headings are linked.
	Anchors map[string]bool
}

// Block is a fenced block of a page.
type Block struct {
	// Line is where its text begins, from 1.
	Line     int
	Language string
	Text     string
	// Steps are the commands of it that are to be run; none if it has no commands
	// or NotExecuted says why they are not run.
	Steps []Step
	// File is the name by which the reader is told to save it, or empty.
	File string
	// NotExecuted is the reason why its commands are not run, or empty.
	NotExecuted string
}

// Step is a command of a block.
type Step struct {
	Line    int
	Command string
	// Expected is what has to have been printed since the step before that expected
	// something, or since the block began; nil if nothing is said about it.
	Expected *Expected
}

// Expected is the output that a page shows.
type Expected struct {
	Line int
	Text string
}

// Link is where a page leads to.
type Link struct {
	Line   int
	Target string
}

// Executed says whether the page has commands that are run.
func (p *Page) Executed() bool {
	for _, block := range p.Blocks {
		if len(block.Steps) > 0 {
			return true
		}
	}
	return false
}

// reader collects what is in a page.
type reader struct {
	source []byte
	page   *Page
}

// Parse reads a page. It fails where a mark or a command cannot be understood, and
// names the line.
func Parse(source []byte) (*Page, error) {
	document := goldmark.New(goldmark.WithExtensions(extension.GFM)).Parser().Parse(text.NewReader(source))
	r := &reader{source: source, page: &Page{Anchors: map[string]bool{}}}
	err := ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		return ast.WalkContinue, r.visit(node)
	})
	if err != nil {
		return nil, err
	}
	return r.page, nil
}

func (r *reader) visit(node ast.Node) error {
	switch node := node.(type) {
	case *ast.FencedCodeBlock:
		block, err := r.block(node)
		if err != nil {
			return err
		}
		r.page.Blocks = append(r.page.Blocks, block)
	case *ast.HTMLBlock:
		return r.checkMark(node)
	case *ast.Heading:
		r.addAnchor(r.plain(node))
	case *ast.Link:
		r.page.Links = append(r.page.Links, Link{Line: r.line(r.offset(node)), Target: string(node.Destination)})
	case *ast.Image:
		r.page.Links = append(r.page.Links, Link{Line: r.line(r.offset(node)), Target: string(node.Destination)})
	}
	return nil
}

// block reads a fenced block, with the mark before it and the output after it.
func (r *reader) block(node *ast.FencedCodeBlock) (Block, error) {
	block := Block{Language: string(node.Language(r.source)), Text: string(node.Lines().Value(r.source))}
	block.Line = r.line(r.offset(node))
	word, value := r.mark(node.PreviousSibling())
	switch word {
	case fileMark:
		block.File = value
	case notExecutedMark:
		block.NotExecuted = value
	}
	if block.File != "" || block.NotExecuted != "" || !isShell(block.Language) {
		return block, nil
	}
	steps, err := parseSteps(block)
	if err != nil {
		return Block{}, err
	}
	block.Steps = steps
	if output, ok := node.NextSibling().(*ast.FencedCodeBlock); ok && string(output.Language(r.source)) == "text" && len(steps) > 0 {
		last := &steps[len(steps)-1]
		if last.Expected != nil {
			return Block{}, fmt.Errorf("line %d: the block has output after its prompts and a text block after it: keep one of them", block.Line)
		}
		last.Expected = &Expected{Line: r.line(r.offset(output)), Text: string(output.Lines().Value(r.source))}
	}
	return block, nil
}

func isShell(language string) bool {
	return language == "console" || language == "sh" || language == "bash"
}

// mark returns the word and the value of a mark, if the node is one.
func (r *reader) mark(node ast.Node) (word, value string) {
	html, ok := node.(*ast.HTMLBlock)
	if !ok {
		return "", ""
	}
	comment := string(html.Lines().Value(r.source))
	if html.HasClosure() {
		comment += string(html.ClosureLine.Value(r.source))
	}
	comment = strings.TrimSpace(comment)
	if !strings.HasPrefix(comment, "<!--") || !strings.HasSuffix(comment, "-->") {
		return "", ""
	}
	comment = strings.TrimSpace(comment[len("<!--") : len(comment)-len("-->")])
	for _, word := range []string{fileMark, notExecutedMark} {
		if value, found := strings.CutPrefix(comment, word); found {
			return word, strings.TrimSpace(value)
		}
	}
	return "", ""
}

// checkMark makes sure that a mark says something, of a block.
func (r *reader) checkMark(node *ast.HTMLBlock) error {
	word, value := r.mark(node)
	if word == "" {
		return nil
	}
	line := r.line(r.offset(node))
	if value == "" {
		return fmt.Errorf("line %d: the mark %q has no value", line, word)
	}
	if _, ok := node.NextSibling().(*ast.FencedCodeBlock); !ok {
		return fmt.Errorf("line %d: no block follows the mark %q", line, word)
	}
	return nil
}

// plain is the text of a node without its markup.
func (r *reader) plain(node ast.Node) string {
	var words strings.Builder
	for child := node.FirstChild(); child != nil; child = child.NextSibling() {
		if leaf, ok := child.(*ast.Text); ok {
			words.Write(leaf.Segment.Value(r.source))
			continue
		}
		words.WriteString(r.plain(child))
	}
	return words.String()
}

// addAnchor makes the fragment of a heading as GitHub does: in lower case, without
// punctuation, hyphens for spaces, and a number if there was the same before.
func (r *reader) addAnchor(heading string) {
	slug := strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-' || c == '_' || isWord(c):
			return c
		}
		return -1
	}, strings.ToLower(strings.TrimSpace(heading)))
	anchor := slug
	for n := 1; r.page.Anchors[anchor]; n++ {
		anchor = fmt.Sprintf("%s-%d", slug, n)
	}
	r.page.Anchors[anchor] = true
}

// offset is where a node begins: of a block its text, of a link what is nearest to it.
func (r *reader) offset(node ast.Node) int {
	for ; node != nil; node = node.Parent() {
		if node.Type() != ast.TypeInline && node.Lines().Len() > 0 {
			return node.Lines().At(0).Start
		}
		if leaf, ok := node.FirstChild().(*ast.Text); ok {
			return leaf.Segment.Start
		}
	}
	return 0
}

func (r *reader) line(offset int) int {
	return bytes.Count(r.source[:offset], []byte("\n")) + 1
}
