// Copyright 2026 The Insitu Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"io"
	"sync"
)

// prefixed writes whole lines, each with a prefix, so that those of several suites can
// be told apart. What it writes to is shared, under a lock.
type prefixed struct {
	to     io.Writer
	mu     *sync.Mutex
	prefix string
	// see, if it is set, is told each line, and may return one to be written behind it.
	see func(line string) string
	// rest is a line that has not ended yet.
	rest []byte
}

func (p *prefixed) Write(text []byte) (int, error) {
	p.rest = append(p.rest, text...)
	end := bytes.LastIndexByte(p.rest, '\n') + 1
	if end == 0 {
		return len(text), nil
	}
	lines := p.rest[:end]
	alarms := p.alarms(lines)
	p.rest = bytes.Clone(p.rest[end:])
	if p.prefix != "" {
		lines = append([]byte(p.prefix), bytes.ReplaceAll(lines[:end-1], []byte("\n"), []byte("\n"+p.prefix))...)
		lines = append(lines, '\n')
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.to.Write(append(bytes.Clone(lines), alarms...)); err != nil {
		return 0, err
	}

	return len(text), nil
}

// alarms returns what is to be written behind some lines.
func (p *prefixed) alarms(lines []byte) []byte {
	var found []byte
	if p.see == nil {
		return nil
	}
	for line := range bytes.Lines(lines) {
		if alarm := p.see(string(bytes.TrimSuffix(line, []byte("\n")))); alarm != "" {
			found = append(append(found, alarm...), '\n')
		}
	}

	return found
}

// flush writes a last line that has no end.
func (p *prefixed) flush() {
	if len(p.rest) > 0 {
		_, _ = p.Write([]byte("\n"))
	}
}
