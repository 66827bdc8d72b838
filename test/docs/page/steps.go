// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

const (
	prompt       = "$ "
	continuation = "> "
)

func isWord(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) }

// parseSteps splits a block into its commands. A block of the language console that
// has prompts has the output of each command after it; any other has commands only.
func parseSteps(block Block) ([]Step, error) {
	if block.Language == "console" && (strings.HasPrefix(block.Text, prompt) || strings.Contains(block.Text, "\n"+prompt)) {
		return parsePrompts(block)
	}
	return split(block.Text, block.Line)
}

// split finds the commands of a script. What is between two of them, as a comment or
// a here document, belongs to the first.
func split(script string, line int) ([]Step, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("block of line %d: parse commands: %w", line, err)
	}
	steps := make([]Step, 0, len(file.Stmts))
	for i, statement := range file.Stmts {
		end := len(script)
		if i+1 < len(file.Stmts) {
			end = int(file.Stmts[i+1].Pos().Offset())
		}
		steps = append(steps, Step{
			Line:    line + int(statement.Pos().Line()) - 1,
			Command: strings.TrimSpace(script[statement.Pos().Offset():end]),
		})
	}
	return steps, nil
}

// parsePrompts reads a block as a terminal shows it.
func parsePrompts(block Block) ([]Step, error) {
	var steps []Step
	inCommand := false
	for i, text := range strings.Split(strings.TrimSuffix(block.Text, "\n"), "\n") {
		line := block.Line + i
		if command, ok := strings.CutPrefix(text, prompt); ok {
			steps = append(steps, Step{Line: line, Command: command, Expected: &Expected{Line: line + 1}})
			inCommand = true
			continue
		}
		if len(steps) == 0 {
			return nil, fmt.Errorf("line %d: output before the first command of the block", line)
		}
		last := &steps[len(steps)-1]
		if more, ok := strings.CutPrefix(text, continuation); ok && inCommand {
			last.Command += "\n" + more
			last.Expected.Line = line + 1
			continue
		}
		inCommand = false
		last.Expected.Text += text + "\n"
	}
	return steps, nil
}
